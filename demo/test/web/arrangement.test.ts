import t from 'tap'
import { CLUSTERS_BELOW, centreOfCluster, clustersOf, group, withNames } from '../../web/floor-plan/arrangement.js'
import { countBy, kindOf, type Marker, markerLabel } from '../../web/floor-plan/marker.js'
import { NAME_HEIGHT, nameLeft, nameTop, overlaps } from '../../web/floor-plan/name-places.js'
import { cornerOfTag } from '../../web/floor-plan/tag-place.js'
import { textWidth } from '../../web/floor-plan/text-width.js'

const marker = (id: string, x: number, y: number): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'employee',
  zoneId: null,
  ageMs: 0,
  isStale: false,
  accuracy: null,
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
    const { singles, clusters } = group(markers, 5, null)

    t.same(
      clusters.map(({ items }) => idsOf(items)),
      [['a', 'b', 'c']]
    )
    t.same(idsOf(singles), ['d', 'e', 'f'])
  })

  t.test('the selected marker is not part of a cluster and is drawn last', async (t) => {
    const { singles, clusters } = group(markers, 5, 'b')

    t.same(clusters, [])
    t.equal(idsOf(singles).at(-1), 'b')
  })

  t.test('there are no clusters when the plan is zoomed in', async (t) => {
    const { singles, clusters } = group(markers, CLUSTERS_BELOW, null)

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
  const panel = { width: 1200, height: 600 }
  /** The names as `id side`, at the left upper corner of the panel. */
  const namesOf = (
    shown: readonly Marker[],
    scale: number,
    more: Partial<Parameters<typeof withNames>[2]> = {},
    selected: string | null = null
  ) =>
    withNames(group(shown, scale, selected), selected, {
      view: { scale, x: 0, y: 0 },
      panel,
      covered: [],
      previous: new Map(),
      ...more
    }).names.map(({ marker: { id }, side }) => `${id} ${side}`)

  t.test('names are shown at every zoom level', async (t) => {
    t.same(namesOf([marker('f', 40, 20)], 5), ['f right'])
    t.same(namesOf([marker('f', 10, 5)], 60), ['f right'])
  })

  t.test('the members of a cluster have no names', async (t) =>
    t.same(namesOf(markers, 5), ['d right', 'e below', 'f right'])
  )

  t.test('a name covers no other marker and no other name', async (t) => {
    const row = [marker('a', 5, 5), marker('b', 6, 5), marker('c', 7, 5)]
    t.same(namesOf(row, 20), ['a left', 'b below', 'c right'])
  })

  t.test('a name does not cover the label of a room: it moves to another side, or is left out', async (t) => {
    const one = [marker('a', 10, 10)]
    const label = (x: number, y: number, width: number, height: number) => ({ x, y, width, height })
    t.same(namesOf(one, 20, { covered: [label(210, 190, 100, 15)] }), ['a left'])
    t.same(namesOf(one, 20, { covered: [label(210, 190, 100, 15), label(90, 190, 100, 15)] }), ['a below'])
    t.same(namesOf(one, 20, { covered: [label(0, 0, 400, 400)] }), [])
  })

  t.test('a name keeps its side while there is room', async (t) => {
    t.same(namesOf([marker('a', 10, 10)], 20, { previous: new Map([['a', 'above']]) }), ['a above'])
  })

  t.test('a name is completely in the panel', async (t) => {
    t.same(namesOf([marker('a', 59, 10)], 20), ['a left'])
    t.same(namesOf([marker('a', 61, 10)], 20), [], 'the marker is outside')
  })

  t.test('a long name is shortened without splitting a character', async (t) => {
    t.equal(markerLabel('Ada Example'), 'Ada Example')
    t.equal(markerLabel('😀'.repeat(200)), `${'😀'.repeat(27)}…`)
  })

  t.test('names of people come before those of assets', async (t) => {
    const near = [{ ...marker('cart', 0.5, 5), kind: 'asset' as const }, marker('b', 0.5, 5.6)]
    t.equal(namesOf(near, 20)[0], 'b right')
  })

  t.test('the selected marker has its own tag instead', async (t) => {
    t.same(namesOf([marker('f', 40, 20)], 5, {}, 'f'), [])
  })

  t.test('500 names never overlap each other or a label', async (t) => {
    const many = Array.from({ length: 500 }, (_, index) =>
      marker(String(index), (index * 7.3) % 58, (index * 3.1) % 28)
    )
    const view = { scale: 20, x: 0, y: 0 }
    const covered = [{ x: 100, y: 100, width: 300, height: 60 }]
    const { names } = withNames(group(many, view.scale, null), null, { view, panel, covered, previous: new Map() })
    const rects = names.map(({ marker: { position, name }, side }) => {
      const width = textWidth(name)
      return {
        x: nameLeft(side, position.x * 20, width),
        y: nameTop(side, position.y * 20),
        width,
        height: NAME_HEIGHT
      }
    })
    const all = [...rects, ...covered]
    t.ok(names.length > 15, `${names.length} names`)
    t.equal(all.filter((one, index) => all.slice(index + 1).some((other) => overlaps(one, other))).length, 0)
  })
})

t.test('the tag of the selected marker avoids the labels of rooms', async (t) => {
  const panel = { width: 1000, height: 600 }
  t.same(cornerOfTag({ x: 300, y: 300 }, 'Ada', panel, []), { left: false, below: false })
  t.same(cornerOfTag({ x: 300, y: 100 }, 'Ada', panel, []), { left: false, below: true })
  const label = { x: 290, y: 114, width: 60, height: 20 }
  t.same(cornerOfTag({ x: 300, y: 100 }, 'Ada', panel, [label]), { left: false, below: false })
  const everywhere = { x: 0, y: 0, width: 1000, height: 600 }
  t.same(cornerOfTag({ x: 300, y: 100 }, 'Ada', panel, [everywhere]), { left: false, below: true }, 'no corner is free')
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
