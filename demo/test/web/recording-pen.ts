import type { Pen } from '../../web/floor-plan/pen.js'

/** A call of the pen with the styles at that moment. */
export interface Mark {
  readonly call: string
  readonly args: readonly unknown[]
  readonly alpha: number
  readonly fill: unknown
  readonly stroke: unknown
}

/** Records what is drawn. A letter is 6 pixels wide. */
export const recordingPen = () => {
  const marks: Mark[] = []
  const record =
    (call: string) =>
    (...args: readonly unknown[]): void => {
      marks.push({ call, args, alpha: pen.globalAlpha, fill: pen.fillStyle, stroke: pen.strokeStyle })
    }
  const pen: Pen = {
    globalAlpha: 1,
    fillStyle: '',
    strokeStyle: '',
    lineWidth: 1,
    lineCap: '',
    lineJoin: '',
    font: '',
    textAlign: '',
    textBaseline: '',
    beginPath: record('beginPath'),
    moveTo: record('moveTo'),
    lineTo: record('lineTo'),
    closePath: record('closePath'),
    arc: record('arc'),
    fill: record('fill'),
    stroke: record('stroke'),
    fillRect: record('fillRect'),
    strokeRect: record('strokeRect'),
    strokeText: record('strokeText'),
    fillText: record('fillText'),
    measureText: (text) => ({ width: 6 * text.length }),
    drawImage: record('drawImage')
  }
  const calls = (name: string): readonly Mark[] => marks.filter(({ call }) => call === name)
  return { pen, calls }
}
