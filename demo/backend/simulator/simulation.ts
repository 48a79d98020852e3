import type { PositionEntry } from '../../../schemas/realtime.js'
import { between, pick, type Random, seededRandom, seedOf } from '../random.js'
import { contains, distance, inset, type Point, toCentimetres } from '../site/geometry.js'
import { type BuildingLayout, type FloorLayout, type Region, regionAt } from '../site/layout.js'
import { type Waypoint, type Ways, waysIn } from './ways.js'

/** Who carries a transmitter, and where it is at home. */
export interface Carrier {
  readonly transmitterId: string
  readonly kind: 'person' | 'thing'
  readonly floorId: string | null
}

type Range = readonly [low: number, high: number]

/** In metres per second, and in milliseconds. Things are pushed, now and then. */
const HABITS: Readonly<Record<Carrier['kind'], { readonly speed: Range; readonly rest: Range }>> = {
  person: { speed: [1.1, 1.5], rest: [4_000, 60_000] },
  thing: { speed: [0.7, 0.9], rest: [300_000, 2_400_000] }
}
const PACE_ON_STAIRS = 0.5
const STAYS_ON_FLOOR = 0.75
const FROM_THE_WALL = 0.8
/** How far off a measured place may be on either axis; nobody is measured into the next room. */
export const NOISE = 0.15

/** Somebody or something that carries a transmitter: on the way, or at rest where the way has ended. */
interface Resident {
  readonly id: string
  readonly kind: Carrier['kind']
  readonly random: Random
  readonly home: Region
  /** In metres per second. */
  readonly speed: number
  place: Waypoint
  way: readonly Waypoint[]
  restMs: number
  leaving: boolean
}

/**
 * People who walk from room to room, through doors and along corridors, and things that are pushed now and then. Time
 * passes when it is told to, and every carrier draws from numbers of its own: the same calls, the same walks.
 */
export class Simulation {
  readonly #floors: ReadonlyMap<string, FloorLayout>
  readonly #musterPoints: readonly Region[]
  readonly #ways: Ways
  readonly #seed: number
  readonly #residents = new Map<string, Resident>()
  #evacuated: ReadonlySet<string> = new Set()

  constructor({ site, seed }: { readonly site: readonly BuildingLayout[]; readonly seed: number }) {
    const floors = site.flatMap((building) => building.floors)
    this.#floors = new Map(floors.map((floor) => [floor.floorId, floor]))
    this.#musterPoints = floors.flatMap(({ regions }) => regions.filter(({ kind }) => kind === 'muster'))
    this.#ways = waysIn(site)
    this.#seed = seed
  }

  /** Those who are new come in, those who are gone leave, and all others go on with what they do. */
  populate(carriers: readonly Carrier[]): void {
    const wanted = new Set(carriers.map(({ transmitterId }) => transmitterId))
    for (const id of this.#residents.keys()) if (!wanted.has(id)) this.#residents.delete(id)
    for (const carrier of carriers) {
      const { transmitterId } = carrier
      if (!this.#residents.has(transmitterId)) this.#residents.set(transmitterId, this.#moveIn(carrier))
    }
  }

  /** From now on the people of these buildings go to their muster point and wait there; those of all others do not. */
  evacuate(buildingIds: ReadonlySet<string>): void {
    this.#evacuated = buildingIds
  }

  advance(ms: number): void {
    for (const resident of this.#residents.values()) {
      this.#decide(resident)
      walk(resident, ms, (place) => (this.#regionOf(place)?.kind === 'stairs' ? PACE_ON_STAIRS : 1))
    }
  }

  /** Where everybody is, as receivers would have it: a little off. */
  positions(nowMs: number): PositionEntry[] {
    return [...this.#residents.values()].map(({ id, place, random }) => {
      const region = this.#regionOf(place)
      return {
        transmitterId: id,
        position: measured(place, region, random),
        positionMethod: 'trilateration',
        floorId: place.floorId,
        zoneId: region?.zoneId ?? null,
        accuracy: toCentimetres(between(random, 0.4, 1.6)),
        timestamp: nowMs
      }
    })
  }

  #decide(resident: Resident): void {
    const { home, kind, way, restMs } = resident
    const mustLeave = kind === 'person' && this.#evacuated.has(home.buildingId)
    const isNew = mustLeave !== resident.leaving
    resident.leaving = mustLeave
    if (!isNew && (way.length > 0 || restMs > 0)) return
    const musterPoint = this.#musterPoints.find(({ buildingId }) => buildingId === home.buildingId)
    this.#send(resident, mustLeave ? (musterPoint ?? home) : isNew ? home : this.#nextRoom(resident))
  }

  #send(resident: Resident, to: Region): void {
    const { place, random, kind } = resident
    const way = this.#ways(this.#regionOf(place)?.zoneId ?? '', to.zoneId)
    if (way === null) return
    resident.way = [...way, spotIn(to, random)]
    resident.restMs = between(random, ...HABITS[kind].rest)
  }

  /** Home again, or a room on the same floor; sometimes one on another. */
  #nextRoom({ place, home, random }: Resident): Region {
    if (this.#regionOf(place) !== home && random() < 0.5) return home
    const near = this.#floors.get(place.floorId)
    if (near !== undefined && random() < STAYS_ON_FLOOR) return pick(random, roomsOf(near))
    const ofBuilding = [...this.#floors.values()].filter(({ buildingId }) => buildingId === home.buildingId)
    return pick(random, roomsOf(pick(random, ofBuilding)))
  }

  #moveIn({ transmitterId: id, kind, floorId }: Carrier): Resident {
    const random = seededRandom(seedOf(id, this.#seed))
    const floor = this.#floors.get(floorId ?? '') ?? pick(random, [...this.#floors.values()])
    const home = pick(random, roomsOf(floor))
    const speed = between(random, ...HABITS[kind].speed)
    const place = spotIn(home, random)
    const restMs = between(random, 0, HABITS[kind].rest[1])
    return { id, kind, random, home, speed, place, restMs, way: [], leaving: false }
  }

  #regionOf(place: Waypoint): Region | undefined {
    const floor = this.#floors.get(place.floorId)
    return floor && regionAt(floor, place)
  }
}

/** Lets time pass. `paceAt` slows it down on stairs. */
const walk = (resident: Resident, ms: number, paceAt: (place: Waypoint) => number): void => {
  let leftMs = ms
  for (const next of resident.way) {
    const { x, y, floorId } = resident.place
    const metresPerMs = (resident.speed * paceAt(resident.place)) / 1000
    const metres = distance(resident.place, next)
    // Up or down the stairs the two ends of a step are the same place on different floors.
    if (metres > metresPerMs * leftMs) {
      const part = (metresPerMs * leftMs) / metres
      resident.place = { x: x + (next.x - x) * part, y: y + (next.y - y) * part, floorId }
      return
    }
    leftMs -= metres / metresPerMs
    resident.place = next
    resident.way = resident.way.slice(1)
  }
  resident.restMs -= leftMs
}

const roomsOf = ({ regions }: FloorLayout): readonly Region[] =>
  regions.filter(({ kind }) => kind !== 'corridor' && kind !== 'stairs' && kind !== 'muster')

const spotIn = ({ rect, floorId }: Region, random: Random): Waypoint => {
  const { x, y, width, height } = inset(rect, FROM_THE_WALL)
  return { x: between(random, x, x + width), y: between(random, y, y + height), floorId }
}

/** In a door there is no room for being off. */
const measured = (place: Point, region: Region | undefined, random: Random): Point => {
  const noisy = { x: place.x + between(random, -NOISE, NOISE), y: place.y + between(random, -NOISE, NOISE) }
  const { x, y } = region !== undefined && contains(inset(region.rect, NOISE), noisy) ? noisy : place
  return { x: toCentimetres(x), y: toCentimetres(y) }
}
