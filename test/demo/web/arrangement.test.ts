import t from 'tap'
import {
  arrange,
  CLUSTERS_BELOW,
  centreOfCluster,
  clustersOf,
  NAMES_FROM
} from '../../../demo/web/floor-plan/arrangement.js'
import { countBy, kindOf, type Marker, markerLabel } from '../../../demo/web/floor-plan/marker.js'

const marker = (id: string, x: number, y: number): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'employee',
  zoneId: null,
  ageMs: 0,
  isStale: false,
  position: { x, y }
})
const idsOf = (markers: readonly Marker[]): readonly string[] => markers.map(({ id }) => id)

/** Three markers at one place, two at another and one far away. */
const markers = [
  ...['a', 'b', 'c'].map((id, index) => marker(id, 10 + index / 10, 5)),
  ...['d', 'e'].map((id) => marker(id, 20, 5)),
  marker('f', 40, 20)
]

t.test('clusters', async (t) => {
  t.test('three markers that overlap become a cluster', async (t) => {
    const { singles, clusters } = arrange(markers, { scale: 5, selected: null, hasNames: false })

    t.same(
      clusters.map(({ items }) => idsOf(items)),
      [['a', 'b', 'c']]
    )
    t.same(idsOf(singles), ['d', 'e', 'f'])
  })

  t.test('the selected marker is not part of a cluster and is drawn last', async (t) => {
    const { singles, clusters } = arrange(markers, { scale: 5, selected: 'b', hasNames: false })

    t.same(clusters, [])
    t.equal(idsOf(singles).at(-1), 'b')
  })

  t.test('there are no clusters when the plan is zoomed in', async (t) => {
    const { singles, clusters } = arrange(markers, { scale: CLUSTERS_BELOW, selected: null, hasNames: false })

    t.same(clusters, [])
    t.equal(singles.length, markers.length)
  })

  t.test('markers on both sides of a cell boundary become one cluster', async (t) => {
    const { clusters } = clustersOf([marker('a', 0.99, 1), marker('b', 1.01, 0.99), marker('c', 1, 1)], 1)
    t.same(
      clusters.map(({ items }) => idsOf(items).toSorted()),
      [['a', 'b', 'c']]
    )
  })

  t.test('no marker is lost or drawn twice', async (t) => {
    const many = Array.from({ length: 1000 }, (_, index) =>
      marker(String(index), (index * 7.3) % 60, (index * 3.1) % 25)
    )
    const { singles, clusters } = clustersOf(many, 2)
    const all = [...singles, ...clusters.flatMap(({ items }) => items)]

    t.equal(all.length, 1000)
    t.equal(new Set(all).size, 1000)
    t.ok(clusters.length > 0)
  })

  t.test('a cluster is at the current centre of its markers', async (t) => {
    const position = { x: 0, y: 0 }
    const cluster = { items: [{ id: 'a', position }, marker('b', 2, 4)] }
    t.same(centreOfCluster(cluster), { x: 1, y: 2 })
    position.x = 4
    t.same(centreOfCluster(cluster), { x: 3, y: 2 })
  })
})

t.test('names', async (t) => {
  const namedAt = (scale: number, hasNames = true, selected: string | null = null): readonly string[] =>
    idsOf(arrange(markers, { scale, selected, hasNames }).named)

  t.test('names are shown from a zoom level on', async (t) => {
    t.same(namedAt(NAMES_FROM - 1), [])
    t.ok(namedAt(NAMES_FROM).includes('f'))
  })

  t.test('names can be switched off', async (t) => t.same(namedAt(NAMES_FROM, false), []))

  t.test('a name covers no other marker', async (t) => t.same(namedAt(NAMES_FROM), ['c', 'f']))

  t.test('a long name is shortened without splitting a character', async (t) => {
    t.equal(markerLabel('Ada Example'), 'Ada Example')
    t.equal(markerLabel('😀'.repeat(200)), `${'😀'.repeat(27)}…`)
  })

  t.test('a name covers no other name', async (t) => {
    const near = [marker('a', 10, 5), marker('b', 8, 5), marker('c', 10, 9)]
    t.same(idsOf(arrange(near, { scale: NAMES_FROM, selected: null, hasNames: true }).named), ['a', 'c'])
  })

  t.test('names of people come before those of assets', async (t) => {
    const near = [{ ...marker('cart', 8, 5), kind: 'asset' as const }, marker('b', 10, 5)]
    t.same(idsOf(arrange(near, { scale: NAMES_FROM, selected: null, hasNames: true }).named), ['b'])
  })

  t.test('the selected marker has its own label instead', async (t) => {
    t.notOk(namedAt(NAMES_FROM, true, 'f').includes('f'))
  })
})

t.test('kinds', async (t) => {
  for (const [entityType, isFirstAider, kind] of [
    ['employee', false, 'employee'],
    ['employee', true, 'first-aider'],
    ['visitor', false, 'visitor'],
    ['contractor', false, 'contractor'],
    ['asset', false, 'asset'],
    [undefined, false, 'employee'],
    ['constructor', false, 'employee']
  ] as const) {
    t.test(
      `${entityType ?? 'an unknown carrier'}${isFirstAider ? ' with training' : ''} is shown as ${kind}`,
      async (t) => {
        t.equal(kindOf(entityType, isFirstAider), kind)
      }
    )
  }

  t.test('markers are counted by kind', async (t) => {
    t.same([...countBy(markers, ({ kind }) => kind)], [['employee', 6]])
  })
})
