import type { Rect } from '../site/geometry.js'
import { MAX_INTERVAL_MS } from './path-recorder.js'

/** Milliseconds after the start of the range, x, y, and the zone. */
export type TrackPoint = readonly [number, number, number, string | null]

/** A stored point, and whether it is on the floor. */
export type StoredPoint = readonly [...TrackPoint, boolean]

/**
 * The path of one transmitter while it was on the floor, up to the last time at which it was there. A transmitter that came
 * back has several tracks.
 */
export interface Track {
  readonly transmitterId: string
  readonly points: readonly TrackPoint[]
}

/** Between points that are further apart, the route is not known: the transmitter counts as staying at the first one. */
export const MAX_GAP_MS = MAX_INTERVAL_MS + 15_000

/** Divides the points of one transmitter, in order of time, where it left the floor. The last position holds until `endMs`. */
export const tracksOf = (transmitterId: string, points: readonly StoredPoint[], endMs: number): Track[] => {
  const tracks: TrackPoint[][] = []
  let current: TrackPoint[] | null = null
  const endAt = (ms: number): void => {
    const [lastMs, x, y, zoneId] = current?.at(-1) ?? [ms, 0, 0, null]
    if (ms > lastMs) current?.push([ms, x, y, zoneId])
    current = null
  }
  for (const [ms, x, y, zoneId, isHere] of points) {
    if (!isHere) {
      endAt(ms)
      continue
    }
    if (current === null) {
      current = []
      tracks.push(current)
    }
    current.push([ms, x, y, zoneId])
  }
  endAt(endMs)
  return tracks.map((part) => ({ transmitterId, points: part }))
}

export interface HeatMap {
  /** The length of a cell in metres. */
  readonly cell: number
  readonly columns: number
  readonly rows: number
  /** Person-seconds per cell, row by row from the north-west corner. */
  readonly seconds: readonly number[]
}

const CELL = 1
const STEP_MS = 5000

/** The time that people spent in each cell of a floor from 0 to `lengthMs`. */
export const heatMapOf = (
  tracks: readonly Track[],
  { width, height }: Omit<Rect, 'x' | 'y'>,
  lengthMs: number
): HeatMap => {
  const [columns, rows] = [Math.ceil(width / CELL), Math.ceil(height / CELL)]
  const totals = new Float64Array(columns * rows)
  const add = (x: number, y: number, ms: number): void => {
    const [column, row] = [Math.floor(x / CELL), Math.floor(y / CELL)]
    // Positions may be outside of the plan.
    if (column >= 0 && column < columns && row >= 0 && row < rows)
      totals[row * columns + column] = (totals[row * columns + column] ?? 0) + ms
  }
  for (const { points } of tracks) {
    for (const [index, [pointMs, x, y]] of points.entries()) {
      const [nextMs, nextX, nextY] = points[index + 1] ?? [pointMs, x, y]
      const isKnown = nextMs - pointMs <= MAX_GAP_MS
      const [startMs, endMs] = isKnown ? [pointMs, nextMs] : [Math.max(pointMs, 0), Math.min(nextMs, lengthMs)]
      const [endX, endY] = isKnown ? [nextX, nextY] : [x, y]
      const steps = Math.ceil((endMs - startMs) / STEP_MS)
      for (let step = 0; step < steps; step += 1) {
        const part = (step + 0.5) / steps
        const atMs = startMs + (endMs - startMs) * part
        if (atMs >= 0 && atMs <= lengthMs) add(x + (endX - x) * part, y + (endY - y) * part, (endMs - startMs) / steps)
      }
    }
  }
  return { cell: CELL, columns, rows, seconds: Array.from(totals, (ms) => Math.round(ms / 1000)) }
}
