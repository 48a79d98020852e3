// What a floor plan is made of, in metres. Everything in this folder runs without a browser.

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

/** From one point to another: x1, y1, x2, y2. */
export type Wall = readonly [number, number, number, number]

export interface Zone {
  readonly id: string
  readonly name: string
  readonly polygon: readonly Point[]
  readonly kind: string
  readonly isRestricted: boolean
  readonly isMusterPoint: boolean
}

export interface Receiver {
  readonly id: string
  readonly name: string
  readonly position: Point
  readonly isOnline: boolean
}

export interface Plan extends Size {
  readonly floorId: string
  readonly name: string
  /** The plan that somebody has uploaded. */
  readonly imageUrl: string | null
  readonly walls: readonly Wall[]
  readonly zones: readonly Zone[]
  readonly receivers: readonly Receiver[]
}

export const distance = (from: Point, to: Point): number => Math.hypot(to.x - from.x, to.y - from.y)

/** The box around a zone: its name goes into a corner of it. */
export const boxAround = (polygon: readonly Point[]): Point & Size => {
  const xs = polygon.map(({ x }) => x)
  const ys = polygon.map(({ y }) => y)
  const x = Math.min(...xs)
  const y = Math.min(...ys)
  return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y }
}
