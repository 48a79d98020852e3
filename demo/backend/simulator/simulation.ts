import type { PositionEntry } from '../../../schemas/realtime.js'
import { between, pick, type Random, seededRandom } from '../random.js'
import { contains, distance, type Point, toCentimetres } from '../site/geometry.js'
import { FLOORS, mayEnter, REGIONS, type Region } from '../site/layout.js'
import { Meetings } from './meetings.js'
import { type Waypoint, wayBetween } from './ways.js'
import type { ZoneAt } from './zone-areas.js'

/** The carrier of a transmitter and its home zone. */
export interface Carrier {
  readonly transmitterId: string
  /** People walk; assets stay. */
  readonly isPerson: boolean
  readonly floorId: string | null
  /** The department of an employee, which decides about restricted zones. */
  readonly departmentId: string | null
}

const METRES_PER_SECOND = [1.1, 1.5] as const
const REST_MS = [4_000, 60_000] as const
const GOES_HOME = 0.4
const STAYS_ON_FLOOR = 0.75
const FROM_THE_WALL = 0.8

/** The share of walks that lead into a zone that the person may not enter, and the time spent there. */
const STRAYS = 0.008
const STRAY_REST_MS = [40_000, 150_000] as const

/** About one transmitter in a hundred is silent at a time. */
const FALLS_SILENT_PER_MS = 2.5e-8
const SILENT_MS = [180_000, 600_000] as const

const ROOMS = REGIONS.filter(({ kind }) => kind !== 'corridor' && kind !== 'stairs' && kind !== 'muster')
const MUSTER_POINTS = REGIONS.filter(({ kind }) => kind === 'muster')

type Errand = 'none' | 'evacuation' | 'meeting'

/** A carrier of a transmitter: walking, or resting at the end of its path. */
interface Resident extends Pick<Carrier, 'isPerson' | 'departmentId'> {
  readonly home: Region
  readonly metresPerMs: number
  position: Waypoint
  way: readonly Waypoint[]
  restMs: number
  errand: Errand
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
  readonly #meetings: Meetings
  #evacuated: ReadonlySet<string> = new Set()
  #zoneAt: ZoneAt = (position) => regionOf(position)?.zoneId ?? null

  constructor(seed: number) {
    this.#random = seededRandom(seed)
    this.#meetings = new Meetings(seededRandom(seed + 1))
  }

  /** Adds new carriers and removes missing ones. A transmitter that is handed over stays where it is. */
  populate(carriers: readonly Carrier[]): void {
    const wanted = new Set(carriers.map(({ transmitterId }) => transmitterId))
    for (const id of this.#residents.keys()) if (!wanted.has(id)) this.#residents.delete(id)
    for (const carrier of carriers) {
      const { transmitterId, isPerson, departmentId } = carrier
      const known = this.#residents.get(transmitterId)
      if (known?.isPerson === isPerson && known.departmentId === departmentId) continue
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
    this.#meetings.advance(ms, (buildingId) => this.#peopleOf(buildingId))
    for (const [id, resident] of this.#residents) {
      this.#fallSilent(resident, ms)
      if (!resident.isPerson) continue
      this.#decide(id, resident)
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

  #moveIn({ isPerson, floorId, departmentId }: Carrier): Resident {
    const allowed = isPerson ? ROOMS.filter((room) => mayEnter(room, departmentId)) : ROOMS
    const near = allowed.filter((room) => room.floorId === floorId)
    const home = pick(this.#random, near.length > 0 ? near : allowed)
    const metresPerMs = between(this.#random, ...METRES_PER_SECOND) / 1000
    const restMs = between(this.#random, 0, REST_MS[1])
    const position = this.#spotIn(home)
    const start = { way: [], restMs, errand: 'none', silentMs: 0, lastHeard: null, located: null } as const
    return { isPerson, departmentId, home, metresPerMs, position, ...start }
  }

  #peopleOf(buildingId: string): string[] {
    return [...this.#residents].flatMap(([id, { isPerson, home }]) =>
      isPerson && home.buildingId === buildingId ? [id] : []
    )
  }

  #fallSilent(resident: Resident, ms: number): void {
    if (resident.silentMs > 0) resident.silentMs -= ms
    else if (this.#random() < FALLS_SILENT_PER_MS * ms) resident.silentMs = between(this.#random, ...SILENT_MS)
  }

  /** Immediately at the start or end of an alarm or a meeting; otherwise after resting. */
  #decide(id: string, resident: Resident): void {
    const { home, position, way, restMs } = resident
    const meetingRoom = this.#meetings.roomOf(id)
    const isEvacuated = this.#evacuated.has(home.buildingId)
    const errand: Errand = isEvacuated ? 'evacuation' : meetingRoom ? 'meeting' : 'none'
    const isNew = errand !== resident.errand
    resident.errand = errand
    if (!isNew && (way.length > 0 || restMs > 0)) return
    // Badges wake up when they are moved.
    if (isEvacuated) resident.silentMs = 0
    const musterPoint = MUSTER_POINTS.find(({ buildingId }) => buildingId === home.buildingId)
    const errandGoal = isEvacuated ? musterPoint : meetingRoom
    const goal = errandGoal ?? (isNew ? home : this.#nextRoom(resident))
    const found = wayBetween(regionOf(position)?.zoneId ?? '', goal.zoneId)
    if (found === null) return
    resident.way = [...found, this.#spotIn(goal)]
    const [least, most] = mayEnter(goal, resident.departmentId) ? REST_MS : STRAY_REST_MS
    resident.restMs = between(this.#random, least, most)
  }

  /** Home, a room on the same floor, or sometimes one on another floor. */
  #nextRoom({ position, home, departmentId }: Resident): Region {
    const strays = this.#random() < STRAYS
    if (!strays && this.#random() < GOES_HOME) return home
    const staysOnFloor = this.#random() < STAYS_ON_FLOOR
    const inReach = ROOMS.filter(({ buildingId, floorId }) =>
      staysOnFloor ? floorId === position.floorId : buildingId === home.buildingId
    )
    const chosen = inReach.filter((room) => mayEnter(room, departmentId) !== strays)
    return chosen.length > 0 ? pick(this.#random, chosen) : home
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
