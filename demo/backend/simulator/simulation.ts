import type { PositionEntry } from '../../../schemas/realtime.js'
import { between, pick, type Random, seededRandom } from '../random.js'
import { contains, distance, type Point, toCentimetres } from '../site/geometry.js'
import { FLOORS, REGIONS, type Region } from '../site/layout.js'
import { type Waypoint, wayBetween } from './ways.js'
import type { ZoneAt } from './zone-areas.js'

/** The carrier of a transmitter and its home zone. */
export interface Carrier {
  readonly transmitterId: string
  /** People walk; assets stay. */
  readonly isPerson: boolean
  readonly floorId: string | null
}

const METRES_PER_SECOND = [1.1, 1.5] as const
const REST_MS = [4_000, 60_000] as const
const GOES_HOME = 0.4
const STAYS_ON_FLOOR = 0.75
const FROM_THE_WALL = 0.8

/** The share of walks that lead into a restricted zone, and the time spent there. */
const STRAYS = 0.008
const STRAY_REST_MS = [40_000, 150_000] as const

/** About one transmitter in a hundred is silent at a time. */
const FALLS_SILENT_PER_MS = 2.5e-8
const SILENT_MS = [180_000, 600_000] as const

const RESTRICTED = REGIONS.filter(({ kind }) => kind === 'restricted')
const ROOMS = REGIONS.filter(({ kind }) => !['corridor', 'stairs', 'muster', 'restricted'].includes(kind))
const MUSTER_POINTS = REGIONS.filter(({ kind }) => kind === 'muster')

/** A carrier of a transmitter: walking, or resting at the end of its path. */
interface Resident extends Pick<Carrier, 'isPerson'> {
  readonly home: Region
  readonly metresPerMs: number
  position: Waypoint
  way: readonly Waypoint[]
  restMs: number
  isEvacuated: boolean
  /** While positive, the transmitter is not heard. */
  silentMs: number
  lastHeard: PositionEntry | null
  /** The rounded point and the zone of `position`; null until they are calculated again. */
  located: Located | null
}

interface Located {
  readonly position: Waypoint
  /** In centimetres. */
  readonly rounded: Point
  readonly zoneId: string | null
}

/**
 * Simulates people who walk from room to room. Time advances by explicit calls, so the same calls give the same walks.
 */
export class Simulation {
  readonly #random: Random
  readonly #residents = new Map<string, Resident>()
  #evacuated: ReadonlySet<string> = new Set()
  #zoneAt: ZoneAt = (position) => regionOf(position)?.zoneId ?? null

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** Adds new carriers and removes missing ones. A transmitter that is handed over stays where it is. */
  populate(carriers: readonly Carrier[]): void {
    const wanted = new Set(carriers.map(({ transmitterId }) => transmitterId))
    for (const id of this.#residents.keys()) if (!wanted.has(id)) this.#residents.delete(id)
    for (const carrier of carriers) {
      const { transmitterId, isPerson } = carrier
      const known = this.#residents.get(transmitterId)
      if (known?.isPerson === isPerson) continue
      this.#residents.set(transmitterId, {
        ...this.#moveIn(carrier),
        ...(known && { position: known.position, lastHeard: known.lastHeard })
      })
    }
  }

  /** Finds the zones of positions by other areas than those of the layout. */
  locateBy(zoneAt: ZoneAt): void {
    this.#zoneAt = zoneAt
    for (const resident of this.#residents.values()) resident.located = null
  }

  /** People in these buildings walk to their muster point and wait there. */
  evacuate(buildingIds: ReadonlySet<string>): void {
    this.#evacuated = buildingIds
  }

  advance(ms: number): void {
    for (const resident of this.#residents.values()) {
      this.#fallSilent(resident, ms)
      if (!resident.isPerson) continue
      this.#decide(resident)
      walk(resident, ms)
    }
  }

  /** The current positions, without those of silent transmitters. */
  positions(nowMs: number): PositionEntry[] {
    const entries: PositionEntry[] = []
    for (const [transmitterId, resident] of this.#residents) {
      if (resident.silentMs > 0) continue
      const { rounded, zoneId } = this.#locate(resident)
      const entry: PositionEntry = {
        transmitterId,
        position: rounded,
        positionMethod: 'trilateration',
        floorId: resident.position.floorId,
        zoneId,
        accuracy: toCentimetres(between(this.#random, 0.4, 1.6)),
        timestamp: nowMs
      }
      resident.lastHeard = entry
      entries.push(entry)
    }
    return entries
  }

  /** Most residents rest: a position is located once. */
  #locate(resident: Resident): Located {
    const { position, located } = resident
    if (located?.position === position) return located
    const rounded = { x: toCentimetres(position.x), y: toCentimetres(position.y) }
    resident.located = { position, rounded, zoneId: this.#zoneAt(position) }
    return resident.located
  }

  /** The last known positions of the silent transmitters. */
  silent(): PositionEntry[] {
    return [...this.#residents.values()].flatMap(({ silentMs, lastHeard }) =>
      silentMs > 0 && lastHeard !== null ? [lastHeard] : []
    )
  }

  #moveIn({ isPerson, floorId }: Carrier): Resident {
    const near = ROOMS.filter((room) => room.floorId === floorId)
    const home = pick(this.#random, near.length > 0 ? near : ROOMS)
    const metresPerMs = between(this.#random, ...METRES_PER_SECOND) / 1000
    const restMs = between(this.#random, 0, REST_MS[1])
    const position = this.#spotIn(home)
    const start = { way: [], restMs, isEvacuated: false, silentMs: 0, lastHeard: null, located: null } as const
    return { isPerson, home, metresPerMs, position, ...start }
  }

  #fallSilent(resident: Resident, ms: number): void {
    if (resident.silentMs > 0) resident.silentMs -= ms
    else if (this.#random() < FALLS_SILENT_PER_MS * ms) resident.silentMs = between(this.#random, ...SILENT_MS)
  }

  /** Immediately at the start or end of an alarm; otherwise after resting. */
  #decide(resident: Resident): void {
    const { home, position, way, restMs } = resident
    const isEvacuated = this.#evacuated.has(home.buildingId)
    const isNew = isEvacuated !== resident.isEvacuated
    resident.isEvacuated = isEvacuated
    if (!isNew && (way.length > 0 || restMs > 0)) return
    // Badges wake up when they are moved.
    if (isEvacuated) resident.silentMs = 0
    const musterPoint = MUSTER_POINTS.find(({ buildingId }) => buildingId === home.buildingId)
    const goal = (isEvacuated ? musterPoint : null) ?? (isNew ? home : this.#nextRoom(resident))
    const found = wayBetween(regionOf(position)?.zoneId ?? '', goal.zoneId)
    if (found === null) return
    resident.way = [...found, this.#spotIn(goal)]
    const [least, most] = goal.kind === 'restricted' ? STRAY_REST_MS : REST_MS
    resident.restMs = between(this.#random, least, most)
  }

  /** Home, a room on the same floor, or sometimes one on another floor. */
  #nextRoom({ position, home }: Resident): Region {
    const strays = this.#random() < STRAYS
    if (!strays && this.#random() < GOES_HOME) return home
    const staysOnFloor = this.#random() < STAYS_ON_FLOOR
    const inReach = (strays ? RESTRICTED : ROOMS).filter(({ buildingId, floorId }) =>
      staysOnFloor ? floorId === position.floorId : buildingId === home.buildingId
    )
    return inReach.length > 0 ? pick(this.#random, inReach) : home
  }

  #spotIn({ rect, floorId }: Region): Waypoint {
    const within = (start: number, length: number) =>
      between(this.#random, start + FROM_THE_WALL, start + length - FROM_THE_WALL)
    return { x: within(rect.x, rect.width), y: within(rect.y, rect.height), floorId }
  }
}

const REGIONS_OF_FLOOR = new Map(FLOORS.map(({ floorId, regions }) => [floorId, regions]))

const regionOf = (position: Waypoint): Region | undefined =>
  REGIONS_OF_FLOOR.get(position.floorId)?.find(({ rect }) => contains(rect, position))

/** Advances along the path. On stairs, both ends of a step are the same point on different floors. */
const walk = (resident: Resident, ms: number): void => {
  let leftMs = ms
  for (const next of resident.way) {
    const { x, y, floorId } = resident.position
    const neededMs = distance(resident.position, next) / resident.metresPerMs
    if (neededMs > leftMs) {
      const part = leftMs / neededMs
      resident.position = { x: x + (next.x - x) * part, y: y + (next.y - y) * part, floorId }
      return
    }
    leftMs -= neededMs
    resident.position = next
    resident.way = resident.way.slice(1)
  }
  resident.restMs -= leftMs
}
