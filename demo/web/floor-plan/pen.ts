/**
 * The part of CanvasRenderingContext2D that is used, so that tests need no browser. Styles are `unknown`, because the type
 * of a canvas allows more than the strings that are written to them, and so are pictures.
 */
export interface Pen {
  globalAlpha: number
  fillStyle: unknown
  strokeStyle: unknown
  lineWidth: number
  lineCap: unknown
  lineJoin: unknown
  setLineDash(lengths: number[]): void
  font: string
  textAlign: unknown
  textBaseline: unknown
  imageSmoothingQuality: unknown
  beginPath(): void
  moveTo(x: number, y: number): void
  lineTo(x: number, y: number): void
  closePath(): void
  arc(x: number, y: number, radius: number, from: number, to: number): void
  rect(x: number, y: number, width: number, height: number): void
  fill(): void
  stroke(): void
  fillRect(x: number, y: number, width: number, height: number): void
  strokeText(text: string, x: number, y: number): void
  fillText(text: string, x: number, y: number): void
  measureText(text: string): { readonly width: number }
  drawImage(picture: unknown, x: number, y: number, width: number, height: number): void
}
