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
  readonly walls: readonly Wall[]
  readonly zones: readonly Zone[]
  readonly receivers: readonly Receiver[]
}

/** The middle of the box around a zone: where its name goes. */
export const middleOf = (polygon: readonly Point[]): Point => {
  const xs = polygon.map(({ x }) => x)
  const ys = polygon.map(({ y }) => y)
  return { x: (Math.min(...xs) + Math.max(...xs)) / 2, y: (Math.min(...ys) + Math.max(...ys)) / 2 }
}

export const widthOf = (polygon: readonly Point[]): number => {
  const xs = polygon.map(({ x }) => x)
  return Math.max(...xs) - Math.min(...xs)
}
