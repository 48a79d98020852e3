import type { PositionEntry } from '../../../schemas/realtime.js'
import { between, pick, type Random, seededRandom, seedOf } from '../random.js'
import { contains, inset, type Point, toCentimetres } from '../site/geometry.js'
import { type BuildingLayout, type FloorLayout, type Region, regionAt } from '../site/layout.js'
import { Routes, type Waypoint } from './routes.js'
import { Walker } from './walker.js'

/** Who carries a transmitter, and where it is at home. */
export interface Carrier {
  readonly transmitterId: string
  readonly kind: 'person' | 'thing'
  readonly floorId: string | null
}

export interface SimulationOptions {
  readonly site: readonly BuildingLayout[]
  readonly seed: number
}

const WALKING_SPEED = { low: 1.1, high: 1.5 } as const
/** Things are pushed. */
const PUSHING_SPEED = { low: 0.7, high: 0.9 } as const
const PACE_ON_STAIRS = 0.5
const REST_MS = { person: { low: 4_000, high: 60_000 }, thing: { low: 300_000, high: 2_400_000 } } as const
const STAYS_ON_FLOOR = 0.75
const FROM_THE_WALL = 0.8
/** How far off a measured place may be on either axis; nobody is measured into the next room. */
export const NOISE = 0.15

interface Resident {
  readonly walker: Walker
  readonly kind: Carrier['kind']
  readonly random: Random
  readonly building: Quarter
  readonly home: Region
  leaving: boolean
}

/** A building as those who walk in it know it. */
interface Quarter {
  readonly buildingId: string
  readonly routes: Routes
  readonly floors: readonly FloorLayout[]
  readonly muster: Region | undefined
}

/**
 * People who walk from room to room, through doors and along corridors, and things that are pushed now and then. Time
 * passes when it is told to, and every carrier draws from numbers of its own: the same calls, the same walks.
 */
export class Simulation {
  readonly #quarters: readonly Quarter[]
  readonly #floors: ReadonlyMap<string, FloorLayout>
  readonly #seed: number
  readonly #residents = new Map<string, Resident>()
  #evacuated: ReadonlySet<string> = new Set()

  constructor({ site, seed }: SimulationOptions) {
    this.#quarters = site.map((building) => ({
      buildingId: building.buildingId,
      routes: new Routes(building),
      floors: building.floors,
      muster: building.floors.flatMap(({ regions }) => regions).find(({ kind }) => kind === 'muster')
    }))
    this.#floors = new Map(site.flatMap(({ floors }) => floors.map((floor) => [floor.floorId, floor])))
    this.#seed = seed
  }

  /** Those who are new come in, those who are gone leave, and all others go on with what they do. */
  populate(carriers: readonly Carrier[]): void {
    const wanted = new Set(carriers.map(({ transmitterId }) => transmitterId))
    for (const id of this.#residents.keys()) if (!wanted.has(id)) this.#residents.delete(id)
    for (const carrier of carriers) {
      if (!this.#residents.has(carrier.transmitterId)) {
        this.#residents.set(carrier.transmitterId, this.#moveIn(carrier))
      }
    }
  }

  /** From now on the people of these buildings go to their muster point and wait there; those of all others do not. */
  evacuate(buildingIds: ReadonlySet<string>): void {
    this.#evacuated = buildingIds
  }

  advance(ms: number): void {
    for (const resident of this.#residents.values()) {
      this.#decide(resident)
      resident.walker.advance(ms, (place) => (this.#regionOf(place)?.kind === 'stairs' ? PACE_ON_STAIRS : 1))
    }
  }

  /** Where everybody is, as receivers would have it: a little off. */
  positions(nowMs: number): PositionEntry[] {
    return [...this.#residents.values()].map(({ walker, random }) => {
      const region = this.#regionOf(walker.place)
      return {
        transmitterId: walker.id,
        position: measured(walker.place, region, random),
        positionMethod: 'trilateration',
        floorId: walker.place.floorId,
        zoneId: region?.zoneId ?? null,
        accuracy: toCentimetres(between(random, 0.4, 1.6)),
        timestamp: nowMs
      }
    })
  }

  #decide(resident: Resident): void {
    const { walker, random, building, home, kind } = resident
    const mustLeave = kind === 'person' && this.#evacuated.has(building.buildingId)
    if (mustLeave !== resident.leaving) {
      resident.leaving = mustLeave
      this.#send(resident, mustLeave ? (building.muster ?? home) : home)
    } else if (walker.isIdle) {
      this.#send(resident, mustLeave ? (building.muster ?? home) : this.#nextRoom(resident, random))
    }
  }

  #send({ walker, random, building, kind }: Resident, to: Region): void {
    const from = this.#regionOf(walker.place)
    const way = from === undefined ? null : building.routes.between(from.zoneId, to.zoneId)
    const floorId = this.#floorOf(to)
    if (way === null || floorId === undefined) return
    walker.send([...way, spotIn(to, floorId, random)], between(random, REST_MS[kind].low, REST_MS[kind].high))
  }

  /** Home again, or a room on the same floor; sometimes one on another. */
  #nextRoom({ walker, building, home }: Resident, random: Random): Region {
    if (this.#regionOf(walker.place) !== home && random() < 0.5) return home
    const near = this.#floors.get(walker.place.floorId)
    const floor = near !== undefined && random() < STAYS_ON_FLOOR ? near : pick(random, building.floors)
    return pick(random, roomsOf(floor))
  }

  #moveIn({ transmitterId, kind, floorId }: Carrier): Resident {
    const random = seededRandom(seedOf(transmitterId, this.#seed))
    const usual = floorId === null ? undefined : this.#floors.get(floorId)
    const floor = usual ?? pick(random, [...this.#floors.values()])
    const home = pick(random, roomsOf(floor))
    const { low, high } = kind === 'person' ? WALKING_SPEED : PUSHING_SPEED
    const walker = new Walker(transmitterId, between(random, low, high), spotIn(home, floor.floorId, random))
    walker.send([], between(random, 0, REST_MS[kind].high))
    const building = this.#quarters.find(({ buildingId }) => buildingId === floor.buildingId)
    if (building === undefined) throw new Error(`floor ${floor.floorId} is in no building`)
    return { walker, kind, random, building, home, leaving: false }
  }

  #regionOf(place: Waypoint): Region | undefined {
    const floor = this.#floors.get(place.floorId)
    return floor === undefined ? undefined : regionAt(floor, place)
  }

  #floorOf(region: Region): string | undefined {
    for (const { floorId, regions } of this.#floors.values()) if (regions.includes(region)) return floorId
    return undefined
  }
}

const roomsOf = ({ regions }: FloorLayout): readonly Region[] =>
  regions.filter(({ kind }) => kind !== 'corridor' && kind !== 'stairs' && kind !== 'muster')

const spotIn = ({ rect }: Region, floorId: string, random: Random): Waypoint => {
  const { x, y, width, height } = inset(rect, FROM_THE_WALL)
  return { x: between(random, x, x + width), y: between(random, y, y + height), floorId }
}

/** In a door there is no room for being off. */
const measured = (place: Point, region: Region | undefined, random: Random): Point => {
  const noisy = { x: place.x + between(random, -NOISE, NOISE), y: place.y + between(random, -NOISE, NOISE) }
  const { x, y } = region !== undefined && contains(inset(region.rect, NOISE), noisy) ? noisy : place
  return { x: toCentimetres(x), y: toCentimetres(y) }
}
