/** A stored position with its place. */
export interface Sighting {
  readonly floorId: string | null
  readonly floorName: string | null
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

/** The stays of one transmitter, newest first. The sightings are in order of time. */
export const staysOf = (sightings: readonly Sighting[]): Stay[] => {
  const stays: Stay[] = []
  for (const { atMs, ...place } of sightings) {
    const current = stays.at(-1)
    if (current !== undefined) stays[stays.length - 1] = { ...current, toMs: atMs }
    if (current?.floorId !== place.floorId || current.zoneId !== place.zoneId)
      stays.push({ ...place, fromMs: atMs, toMs: atMs })
  }
  return stays.filter(({ fromMs, toMs }, index) => index === stays.length - 1 || toMs - fromMs >= MIN_STAY_MS).reverse()
}
