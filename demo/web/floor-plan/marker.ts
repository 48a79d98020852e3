import type { Point } from './plan.js'

export type MarkerKind = 'employee' | 'visitor' | 'contractor' | 'first-aider' | 'asset'

export interface Marker {
  /** The id of the transmitter. */
  readonly id: string
  readonly position: Point
  readonly name: string
  readonly kind: MarkerKind
  readonly zoneId: string | null
  readonly ageMs: number
  /** The position is out of date; the marker is dimmed. */
  readonly isStale: boolean
  /** During an emergency; null for those who are not concerned. */
  readonly muster?: MusterStatus | null
}

export type MusterStatus = 'safe' | 'missing'

/** Drawn around and beside a marker: a ring with a tick or an exclamation mark, so that it can be read without its colour. */
export const MUSTER_SIGNS: Readonly<Record<MusterStatus, { readonly colour: `--${string}`; readonly path: string }>> = {
  safe: { colour: '--good', path: 'M1.5 4.5L4 7L8 1.5' },
  missing: { colour: '--danger', path: 'M4.5 .8V4.9M4.5 7.3V8' }
}

interface Appearance {
  readonly title: string
  /** An SVG path on a grid of 16 × 16, used on the plan, in the legend and in lists. */
  readonly path: string
  readonly colour: `--${string}`
}

/** Each kind has its own shape, so that it can be recognised without its colour. */
export const APPEARANCES: Readonly<Record<MarkerKind, Appearance>> = {
  employee: { title: 'Employee', path: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11Z', colour: '--accent' },
  visitor: { title: 'Visitor', path: 'M8 1.5L14.5 8L8 14.5L1.5 8Z', colour: '--visitor' },
  contractor: { title: 'Contractor', path: 'M8 2L14.5 13.5H1.5Z', colour: '--contractor' },
  'first-aider': { title: 'First aider', path: 'M6 2h4v4h4v4h-4v4H6v-4H2V6h4Z', colour: '--good' },
  asset: { title: 'Asset', path: 'M3 3h10v10H3Z', colour: '--muted' }
}

export const MARKER_KINDS: readonly MarkerKind[] = ['employee', 'first-aider', 'visitor', 'contractor', 'asset']

/** The kind of a carrier. A transmitter without a known carrier is shown as an employee. */
export const kindOf = (entityType: string | null | undefined, isFirstAider = false): MarkerKind => {
  if (isFirstAider) return 'first-aider'
  return entityType === 'asset' || entityType === 'visitor' || entityType === 'contractor' ? entityType : 'employee'
}

export const isPerson = (kind: MarkerKind): boolean => kind !== 'asset'

/** The sign of several markers: one missing person makes them missing. */
export const musterOf = (markers: readonly Marker[]): MusterStatus | null => {
  if (markers.some(({ muster }) => muster === 'missing')) return 'missing'
  return markers.some(({ muster }) => muster === 'safe') ? 'safe' : null
}

export const countBy = <Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): ReadonlyMap<Key, number> => {
  const counts = new Map<Key, number>()
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1)
  return counts
}
