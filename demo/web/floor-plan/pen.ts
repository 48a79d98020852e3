/** The part of CanvasRenderingContext2D that is used, so that tests need no browser. Styles and pictures are `unknown`. */
export interface Pen {
  globalAlpha: number
  fillStyle: unknown
  strokeStyle: unknown
  lineWidth: number
  lineCap: unknown
  lineJoin: unknown
  font: string
  textAlign: unknown
  textBaseline: unknown
  beginPath(): void
  moveTo(x: number, y: number): void
  lineTo(x: number, y: number): void
  closePath(): void
  arc(x: number, y: number, radius: number, from: number, to: number, isCounterclockwise?: boolean): void
  fill(): void
  stroke(): void
  fillRect(x: number, y: number, width: number, height: number): void
  strokeRect(x: number, y: number, width: number, height: number): void
  strokeText(text: string, x: number, y: number): void
  fillText(text: string, x: number, y: number): void
  measureText(text: string): { readonly width: number }
  drawImage(picture: unknown, x: number, y: number, width: number, height: number): void
}
