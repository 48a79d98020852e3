import type { PositionEntry } from '../../../schemas/realtime.js'
import type { PathPoint } from '../history/path-recorder.js'
import { DAY_MS, HOUR_MS } from '../history/store.js'
import { between, pick, type Random } from '../random.js'
import { contains, toCentimetres } from '../site/geometry.js'
import { FLOORS, mayEnter, REGIONS, type Region } from '../site/layout.js'
import type { Carrier } from './simulation.js'

/** A new demo has a history of so many days. */
export const PAST_DAYS = 6

const STAY_MS = [6 * 60_000, 40 * 60_000] as const
const STAYS_HOME = 0.5
const STAYS_ON_FLOOR = 0.75
const FROM_THE_WALL = 0.8
/** The share of people who are there at night. */
const AT_NIGHT = 1 / 12

const ROOMS = REGIONS.filter(({ kind }) => kind !== 'corridor' && kind !== 'stairs' && kind !== 'muster')

interface Past {
  readonly carriers: readonly Carrier[]
  /** The positions at the end of the generated time. */
  readonly positions: readonly PositionEntry[]
  readonly endMs: number
  readonly random: Random
}

/**
 * The stays of previous days, one position for each: as in a thinned history, but without simulating every second. People are
 * there for some hours around the time of day at which the history ends; assets do not move.
 */
export const pastDays = ({ carriers, positions, endMs, random }: Past): PathPoint[] => {
  const carrierOf = new Map(carriers.map((carrier) => [carrier.transmitterId, carrier]))
  return positions.flatMap((position) => {
    const carrier = carrierOf.get(String(position.transmitterId))
    if (carrier === undefined) return []
    if (!carrier.isPerson) return [pointAt(position, endMs - PAST_DAYS * DAY_MS)]
    const home = roomOf(position) ?? pick(random, ROOMS)
    const share = random()
    return Array.from({ length: PAST_DAYS + 1 }, (_, index) => PAST_DAYS - index).flatMap((daysAgo) => {
      const middleMs = endMs - daysAgo * DAY_MS
      const halfMs = halfPresence(share) + between(random, -0.4, 0.4) * HOUR_MS
      return stays({ carrier, home, random, fromMs: middleMs - halfMs, toMs: middleMs + halfMs, endMs })
    })
  })
}

/** Half of the time that a person is there on a day. The number of people is a cosine of the time, as in the counts of the seed. */
const halfPresence = (share: number): number =>
  share < AT_NIGHT ? DAY_MS / 2 - HOUR_MS : (Math.acos(Math.max(-1, (share - 0.55) / 0.65)) / (2 * Math.PI)) * DAY_MS

interface Presence {
  readonly carrier: Carrier
  readonly home: Region
  readonly random: Random
  readonly fromMs: number
  readonly toMs: number
  /** No stay begins later. */
  readonly endMs: number
}

const stays = ({ carrier, home, random, fromMs, toMs, endMs }: Presence): PathPoint[] => {
  const points: PathPoint[] = []
  const allowed = ROOMS.filter((room) => room.buildingId === home.buildingId && mayEnter(room, carrier.departmentId))
  const onFloor = allowed.filter(({ floorId }) => floorId === home.floorId)
  for (let atMs = fromMs; atMs < Math.min(toMs, endMs); atMs += between(random, ...STAY_MS)) {
    const rooms = random() < STAYS_ON_FLOOR && onFloor.length > 0 ? onFloor : allowed
    const { rect, floorId, zoneId } = random() < STAYS_HOME || rooms.length === 0 ? home : pick(random, rooms)
    const within = (start: number, length: number): number =>
      toCentimetres(between(random, start + FROM_THE_WALL, start + length - FROM_THE_WALL))
    const [x, y] = [within(rect.x, rect.width), within(rect.y, rect.height)]
    points.push({ transmitterId: carrier.transmitterId, floorId, zoneId, x, y, atMs: Math.round(atMs) })
  }
  const last = points.at(-1)
  return last === undefined || toMs >= endMs
    ? points
    : [...points, { ...last, floorId: null, zoneId: null, atMs: Math.round(toMs) }]
}

const roomOf = ({ floorId, position }: PositionEntry): Region | undefined =>
  FLOORS.find((floor) => floor.floorId === floorId)?.regions.find(
    ({ rect, kind }) => contains(rect, position) && kind !== 'corridor' && kind !== 'stairs' && kind !== 'muster'
  )

const pointAt = ({ transmitterId, floorId, zoneId, position: { x, y } }: PositionEntry, atMs: number): PathPoint => ({
  transmitterId: String(transmitterId),
  floorId: String(floorId),
  zoneId: zoneId == null ? null : String(zoneId),
  x,
  y,
  atMs
})
