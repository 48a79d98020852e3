import t from 'tap'
import type { PositionEntry } from '../../schemas/realtime.js'
import { type Carrier, Simulation } from '../backend/simulator/simulation.js'
import { contains, type Point, type Wall } from '../backend/site/geometry.js'
import { BUILDINGS, FLOORS, REGIONS } from '../backend/site/layout.js'

const floors = new Map(FLOORS.map((floor) => [floor.floorId, floor]))
const musterZones = new Set(REGIONS.filter(({ kind }) => kind === 'muster').map(({ zoneId }) => zoneId))

const people: readonly Carrier[] = Array.from({ length: 60 }, (_, index) => ({
  transmitterId: `t-${index}`,
  isPerson: true,
  floorId: `f-${(index % 9) + 1}`
}))

const FASTEST = 1.5
const SECONDS = 900

/** All positions once a second for 15 minutes. */
const walk = (seed: number, seconds = SECONDS): PositionEntry[][] => {
  const simulation = new Simulation(seed)
  simulation.populate(people)
  return Array.from({ length: seconds }, (_, second) => {
    simulation.advance(1000)
    return simulation.positions(second * 1000)
  })
}

/** The positions of a person in consecutive seconds. Transmitters are silent at times. */
const pairs = (seen: readonly PositionEntry[][]) =>
  seen.slice(1).flatMap((now, index) => {
    const before = new Map(seen[index]?.map((entry) => [entry.transmitterId, entry]))
    return now.flatMap((to) => {
      const from = before.get(to.transmitterId)
      return from === undefined ? [] : [{ from, to }]
    })
  })

/** All movements between consecutive seconds on the same floor. */
const steps = (seen: readonly PositionEntry[][]) =>
  pairs(seen).flatMap(({ from, to }) =>
    from.floorId === to.floorId ? [{ from: from.position, to: to.position, floorId: String(to.floorId) }] : []
  )

const side = ([x1, y1, x2, y2]: Wall, { x, y }: Point): number => Math.sign((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1))

const crosses = (wall: Wall, from: Point, to: Point): boolean => {
  const [x1, y1, x2, y2] = wall
  const path: Wall = [from.x, from.y, to.x, to.y]
  return side(wall, from) * side(wall, to) < 0 && side(path, { x: x1, y: y1 }) * side(path, { x: x2, y: y2 }) < 0
}

t.test('the site has three buildings with nine floors, whose zones lie on them', async (t) => {
  t.same(
    [BUILDINGS.length, floors.size, REGIONS.length],
    [3, 9, 66],
    'three buildings, nine floors, and about sixty zones'
  )
  t.equal(new Set(REGIONS.map(({ zoneId }) => zoneId)).size, REGIONS.length, 'each zone has an id of its own')
  for (const floor of floors.values()) {
    t.ok(
      floor.regions.every(({ rect }) => contains({ x: 0, y: 0, width: floor.width, height: floor.height }, rect)),
      `the zones of ${floor.floorId} are on it`
    )
  }
})

t.test('people in the simulation', async (t) => {
  const seen = walk(7)

  t.test('people never walk through a wall', async (t) => {
    const through = steps(seen).filter(({ from, to, floorId }) =>
      floors.get(floorId)?.walls.some((wall) => crosses(wall, from, to))
    )
    t.same(through, [])
  })

  t.test('people never exceed walking speed', async (t) => {
    const bound = FASTEST + 0.02
    const tooFast = steps(seen).filter(({ from, to }) => Math.hypot(to.x - from.x, to.y - from.y) > bound)
    t.same(tooFast, [])
  })

  t.test('people walk, pause and take the stairs', async (t) => {
    const lengths = steps(seen).map(({ from, to }) => Math.hypot(to.x - from.x, to.y - from.y))
    t.ok(lengths.filter((length) => length > 1).length > lengths.length / 20, 'many are on the way')
    t.ok(lengths.filter((length) => length < 0.1).length > lengths.length / 5, 'many are at rest')
    const changes = pairs(seen).filter(({ from, to }) => from.floorId !== to.floorId)
    t.ok(new Set(changes.map(({ to }) => to.transmitterId)).size > 5, 'some change the floor')
  })

  t.test('positions have the zone of their floor that contains them', async (t) => {
    const lost = seen.flat().filter(({ floorId, zoneId, position }) => {
      const zone = floors.get(String(floorId))?.regions.find((region) => region.zoneId === zoneId)
      return (
        zone === undefined ||
        !contains(
          {
            ...zone.rect,
            x: zone.rect.x - 0.01,
            y: zone.rect.y - 0.01,
            width: zone.rect.width + 0.02,
            height: zone.rect.height + 0.02
          },
          position
        )
      )
    })
    t.same(lost, [])
  })

  t.test('the same seed gives the same walks, another seed others', async (t) => {
    t.same(walk(7, 60), seen.slice(0, 60))
    t.not(JSON.stringify(walk(8, 60)), JSON.stringify(seen.slice(0, 60)))
  })
})

t.test('an evacuation', async (t) => {
  const simulation = new Simulation(3)
  simulation.populate(people)
  for (let second = 0; second < 60; second += 1) simulation.advance(1000)
  simulation.evacuate(new Set(['1']))
  const seen = Array.from({ length: 400 }, (_, second) => {
    simulation.advance(1000)
    return simulation.positions(second)
  })
  const buildingOf = ({ floorId }: PositionEntry): string | undefined => floors.get(String(floorId))?.buildingId
  const last = seen.at(-1) ?? []

  t.test('an evacuation moves only the people of the building to its muster point', async (t) => {
    const inside = last.filter((position) => buildingOf(position) === '1')
    t.ok(inside.length > 10)
    t.same([...new Set(inside.map(({ zoneId }) => musterZones.has(String(zoneId))))], [true])
    const others = last.filter((position) => buildingOf(position) !== '1')
    t.same(
      others.filter(({ zoneId }) => musterZones.has(String(zoneId))),
      []
    )
  })

  t.test('people return after an evacuation', async (t) => {
    simulation.evacuate(new Set())
    for (let second = 0; second < 300; second += 1) simulation.advance(1000)
    t.same(
      simulation.positions(0).filter(({ zoneId }) => musterZones.has(String(zoneId))),
      []
    )
  })
})

t.test('an hour of the whole site', async (t) => {
  const simulation = new Simulation(2024)
  const carriers: readonly Carrier[] = Array.from({ length: 270 }, (_, index) => ({
    transmitterId: `t-${index}`,
    isPerson: index < 210,
    floorId: index < 160 ? `f-${(index % 9) + 1}` : null
  }))
  const regions = new Map(REGIONS.map((region) => [region.zoneId, region]))
  const carrierOf = new Map(carriers.map((carrier) => [carrier.transmitterId, carrier]))
  simulation.populate(carriers)
  const minutes = Array.from({ length: 60 }, (_, minute) => {
    for (let second = 0; second < 60; second += 1) simulation.advance(1000)
    const heard = simulation.positions(minute * 60_000)
    const present = heard.flatMap(({ transmitterId, zoneId }) => {
      const [carrier, region] = [carrierOf.get(String(transmitterId)), regions.get(String(zoneId))]
      return carrier?.isPerson && region ? [{ carrier, region }] : []
    })
    const crowded = [...regions.values()].filter(({ zoneId, capacity }) => {
      return capacity !== null && present.filter(({ region }) => region.zoneId === zoneId).length > capacity
    })
    return {
      heard: heard.length,
      silent: simulation.silent(),
      strays: present.filter(({ region }) => region.kind === 'restricted').length,
      crowded: crowded.map(({ kind }) => kind)
    }
  })
  const most = (numbers: readonly number[]): number => Math.max(...numbers)

  t.test('few people are in restricted zones', async (t) => {
    const strays = minutes.map((minute) => minute.strays)
    t.ok(most(strays) >= 2 && most(strays) <= 10, strays.join())
    t.ok(strays.filter((count) => count > 0).length > 20, strays.join())
  })

  t.test('only meeting rooms exceed the capacity of a zone, and not all the time', async (t) => {
    const kinds = minutes.flatMap(({ crowded }) => crowded)
    t.same([...new Set(kinds)], ['meeting'])
    t.ok(kinds.length > 5, `${kinds.length} times`)
    t.ok(most(minutes.map(({ crowded }) => crowded.length)) <= 3)
  })

  t.test('few transmitters are silent, and keep their last position and its time', async (t) => {
    const silent = minutes.map((minute) => minute.silent.length)
    t.ok(most(silent) >= 2 && most(silent) <= 12, silent.join())
    for (const [index, { heard, silent }] of minutes.entries()) {
      t.equal(heard + silent.length, carriers.length)
      t.ok(silent.every(({ timestamp }) => Number(timestamp) < index * 60_000))
    }
  })
})

t.test('adding and removing carriers does not affect the others', async (t) => {
  const simulation = new Simulation(5)
  const ids = (): unknown[] => simulation.positions(0).map(({ transmitterId }) => transmitterId)
  simulation.populate(people.slice(0, 1))
  for (let second = 0; second < 90; second += 1) simulation.advance(1000)
  const [before] = simulation.positions(0)

  simulation.populate(people.slice(0, 2))
  const [after] = simulation.positions(0)
  t.same(ids(), ['t-0', 't-1'])
  t.ok(before && after && Math.hypot(before.position.x - after.position.x, before.position.y - after.position.y) < 1)

  simulation.populate(people.slice(1, 2))
  t.same(ids(), ['t-1'])
})

t.test('a transmitter that is handed over from an asset to a person starts to walk where it was', async (t) => {
  const simulation = new Simulation(1)
  const carrier = { transmitterId: 't-1', isPerson: false, floorId: 'f-1' }
  simulation.populate([carrier])
  const [before] = simulation.positions(0)
  simulation.populate([{ ...carrier, isPerson: true }])
  const [after] = simulation.positions(0)
  t.same(after?.position, before?.position)
  const moved = Array.from({ length: 120 }, (_, second) => {
    simulation.advance(1000)
    return simulation.positions(second)[0]?.position
  })
  t.ok(moved.some((position) => position && position.x !== before?.position.x))
})
