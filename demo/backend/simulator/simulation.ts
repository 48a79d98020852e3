import type { PositionEntry } from '../../../schemas/realtime.js'
import { between, pick, type Random, seededRandom } from '../random.js'
import { contains, distance, toCentimetres } from '../site/geometry.js'
import { REGIONS, type Region } from '../site/layout.js'
import { type Waypoint, wayBetween } from './ways.js'

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

const ROOMS = REGIONS.filter(({ kind }) => kind !== 'corridor' && kind !== 'stairs' && kind !== 'muster')
const MUSTER_POINTS = REGIONS.filter(({ kind }) => kind === 'muster')

/** A carrier of a transmitter: walking, or resting at the end of its path. */
interface Resident {
  readonly isPerson: boolean
  readonly home: Region
  readonly metresPerMs: number
  position: Waypoint
  way: readonly Waypoint[]
  restMs: number
  isLeaving: boolean
}

/**
 * Simulates people who walk from room to room. Time advances by explicit calls, so the same calls give the same walks.
 */
export class Simulation {
  readonly #random: Random
  readonly #residents = new Map<string, Resident>()
  #evacuated: ReadonlySet<string> = new Set()

  constructor(seed: number) {
    this.#random = seededRandom(seed)
  }

  /** Adds new carriers, removes missing ones and keeps the others unchanged. */
  populate(carriers: readonly Carrier[]): void {
    const wanted = new Set(carriers.map(({ transmitterId }) => transmitterId))
    for (const id of this.#residents.keys()) if (!wanted.has(id)) this.#residents.delete(id)
    for (const carrier of carriers) {
      const { transmitterId } = carrier
      if (!this.#residents.has(transmitterId)) this.#residents.set(transmitterId, this.#moveIn(carrier))
    }
  }

  /** People in these buildings walk to their muster point and wait there. */
  evacuate(buildingIds: ReadonlySet<string>): void {
    this.#evacuated = buildingIds
  }

  advance(ms: number): void {
    for (const resident of this.#residents.values()) {
      if (!resident.isPerson) continue
      this.#decide(resident)
      walk(resident, ms)
    }
  }

  /** The current positions. */
  positions(nowMs: number): PositionEntry[] {
    return [...this.#residents].map(([transmitterId, { position }]) => ({
      transmitterId,
      position: { x: toCentimetres(position.x), y: toCentimetres(position.y) },
      positionMethod: 'trilateration',
      floorId: position.floorId,
      zoneId: regionOf(position)?.zoneId ?? null,
      accuracy: toCentimetres(between(this.#random, 0.4, 1.6)),
      timestamp: nowMs
    }))
  }

  #moveIn({ isPerson, floorId }: Carrier): Resident {
    const near = ROOMS.filter((room) => room.floorId === floorId)
    const home = pick(this.#random, near.length > 0 ? near : ROOMS)
    const metresPerMs = between(this.#random, ...METRES_PER_SECOND) / 1000
    const restMs = between(this.#random, 0, REST_MS[1])
    return { isPerson, home, metresPerMs, position: this.#spotIn(home), way: [], restMs, isLeaving: false }
  }

  /** Immediately at the start or end of an alarm; otherwise after resting. */
  #decide(resident: Resident): void {
    const { home, position, way, restMs } = resident
    const mustLeave = this.#evacuated.has(home.buildingId)
    const isNew = mustLeave !== resident.isLeaving
    resident.isLeaving = mustLeave
    if (!isNew && (way.length > 0 || restMs > 0)) return
    const musterPoint = MUSTER_POINTS.find(({ buildingId }) => buildingId === home.buildingId)
    const goal = mustLeave ? (musterPoint ?? home) : isNew ? home : this.#nextRoom(resident)
    const found = wayBetween(regionOf(position)?.zoneId ?? '', goal.zoneId)
    if (found === null) return
    resident.way = [...found, this.#spotIn(goal)]
    resident.restMs = between(this.#random, ...REST_MS)
  }

  /** Home, a room on the same floor, or sometimes one on another floor. */
  #nextRoom({ position, home }: Resident): Region {
    if (this.#random() < GOES_HOME) return home
    const staysOnFloor = this.#random() < STAYS_ON_FLOOR
    const inReach = ROOMS.filter(({ buildingId, floorId }) =>
      staysOnFloor ? floorId === position.floorId : buildingId === home.buildingId
    )
    return pick(this.#random, inReach)
  }

  #spotIn({ rect, floorId }: Region): Waypoint {
    const within = (start: number, length: number) =>
      between(this.#random, start + FROM_THE_WALL, start + length - FROM_THE_WALL)
    return { x: within(rect.x, rect.width), y: within(rect.y, rect.height), floorId }
  }
}

const regionOf = (position: Waypoint): Region | undefined =>
  REGIONS.find(({ floorId, rect }) => floorId === position.floorId && contains(rect, position))

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
