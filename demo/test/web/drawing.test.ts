import t from 'tap'
import { doorPath, furnitureOf, rectPath, treadsPath } from '../../web/floor-plan/building.js'
import { zoneLabels } from '../../web/floor-plan/labels.js'
import { centreOn, fit } from '../../web/floor-plan/viewport.js'

t.test('the building', async (t) => {
  t.test('a door opens away from the corridor', async (t) => {
    const corridors = new Set(['2'])
    const door = { x: 10, y: 10, width: 1, way: 'y', between: ['1', '2'] } as const
    t.equal(doorPath(door, corridors), 'M9.5 10v-1A1 1 0 0 1 10.5 10')
    t.equal(doorPath({ ...door, between: ['2', '3'] }, corridors), 'M9.5 10v1A1 1 0 0 0 10.5 10')
    t.equal(doorPath({ ...door, way: 'x' }, corridors), 'M10 9.5h-1A1 1 0 0 0 10 10.5')
    t.equal(doorPath({ ...door, way: 'x', between: ['2', '3'] }, corridors), 'M10 9.5h1A1 1 0 0 1 10 10.5')
  })

  t.test('rooms have furniture by their type, inside of their walls', async (t) => {
    for (const type of ['office', 'laboratory', 'common', 'meeting', 'restricted']) {
      const pieces = furnitureOf(type, { x: 5, y: 5, width: 12, height: 9 })
      t.ok(pieces.length > 0, type)
      for (const { x, y, width, height } of pieces)
        t.ok(x > 5.9 && y > 5.9 && x + width < 16.1 && y + height < 13.1, `${type} at ${x}, ${y}`)
    }
    for (const type of ['corridor', 'stairs', 'muster', null])
      t.same(furnitureOf(type, { x: 0, y: 0, width: 9, height: 9 }), [])
    t.same(furnitureOf('office', { x: 0, y: 0, width: 2, height: 2 }), [], 'a small room')
    t.equal(rectPath({ x: 1, y: 2, width: 3, height: 4 }), 'M1 2h3v4h-3z')
  })

  t.test('stairs have treads from wall to wall', async (t) => {
    const treads = treadsPath({ x: 0, y: 13, width: 6, height: 7 }).match(/M0 [\d.]+h6/g) ?? []
    t.ok(treads.length >= 5)
    t.equal(treadsPath({ x: 0, y: 0, width: 6, height: 2 }), '')
  })
})

t.test('the labels of the zones', async (t) => {
  const floor = { width: 40, height: 20 }
  const panel = { width: 832, height: 432 }
  const rectangle = (x: number) => [
    { x, y: 0 },
    { x: x + 20, y: 0 },
    { x: x + 20, y: 10 },
    { x, y: 10 }
  ]
  const zones = [
    { id: '1', name: 'Library', polygon: rectangle(0) },
    { id: '2', name: 'Server Room', polygon: rectangle(20) },
    { id: '3', name: 'Unmeasured', polygon: null }
  ]
  const textsOf = ({ view = fit({ floor, panel }), people = new Map<string, number>(), received = null } = {}) =>
    zoneLabels(zones, { people, received, view, panel }).map(({ text }) => text)

  t.test('the name of a zone is in its corner, after the number of people', async (t) => {
    const view = fit({ floor, panel })
    const [label] = zoneLabels(zones, { people: new Map([['1', 7]]), received: null, view, panel })
    t.same(label, { id: '1', text: '7 Library', x: 24, y: 16, width: 67.5, height: 20 })
  })

  t.test('a name that does not fit is not shown, but the number of people is', async (t) => {
    const view = { scale: 4, x: 0, y: 0 }
    t.same(textsOf({ view }), ['Library'])
    t.same(textsOf({ view, people: new Map([['2', 5]]) }), ['Library', '5'])
    t.same(textsOf({ view: { scale: 1, x: 0, y: 0 } }), [])
  })

  t.test('the number of people of a zone that is not completely received is not shown', async (t) => {
    const people = new Map([['1', 7]])
    const label = (w: number) =>
      zoneLabels(zones, { people, received: { x: 0, y: 0, w, h: 15 }, view: fit({ floor, panel }), panel })[0]?.text
    t.same([label(15), label(25)], ['Library', '7 Library'])
  })

  t.test('the name stays in the visible part of a zone', async (t) => {
    const view = centreOn(100, { x: 10, y: 5 }, { floor, panel })
    t.match(zoneLabels(zones, { people: new Map(), received: null, view, panel }), [{ text: 'Library', x: 8, y: 0 }])
  })
})
