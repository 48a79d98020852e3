/** A stored position with its place. Without a floor, the transmitter is not heard from then on. */
export interface Sighting {
  readonly floorId: string | null
  readonly floorName: string | null
  readonly buildingName: string | null
  readonly zoneId: string | null
  readonly zoneName: string | null
  readonly atMs: number
}

/** A stay in a zone, or on a floor outside of all zones. */
export interface Stay extends Omit<Sighting, 'atMs'> {
  readonly fromMs: number
  readonly toMs: number
}

/** Shorter stays are passages, except the last one. This also limits their number. */
const MIN_STAY_MS = 30_000

/** The stays of one transmitter, newest first. The sightings are in order of time; the last one lasts until `endMs`. */
export const staysOf = (sightings: readonly Sighting[], endMs = Number.NEGATIVE_INFINITY): Stay[] => {
  const stays: Stay[] = []
  for (const { atMs, ...place } of sightings) {
    const current = stays.at(-1)
    if (current !== undefined) stays[stays.length - 1] = { ...current, toMs: atMs }
    if (current?.floorId !== place.floorId || current.zoneId !== place.zoneId)
      stays.push({ ...place, fromMs: atMs, toMs: atMs })
  }
  const last = stays.pop()
  if (last !== undefined) stays.push({ ...last, toMs: Math.max(last.toMs, endMs) })
  return stays
    .filter(({ floorId, fromMs, toMs }, index) => {
      if (floorId === null) return false
      return index === stays.length - 1 || toMs - fromMs >= MIN_STAY_MS
    })
    .reverse()
}
