import t from 'tap'
import { arrange, CLUSTERS_BELOW, centreOfCluster, clustersOf } from '../../web/floor-plan/arrangement.js'
import { drawAccuracy, drawMarkers, type Sprites } from '../../web/floor-plan/draw-markers.js'
import { APPEARANCES, kindOf, MARKER_KINDS, type Marker, markerLabel } from '../../web/floor-plan/marker.js'
import { nearest, overlaps, type Rect } from '../../web/floor-plan/plan.js'
import { PastFloor, trailOf } from '../../web/floor-plan/tracks.js'
import type { FloorTracks, Track } from '../../web/types.js'
import { recordingPen } from './recording-pen.js'

const marker = (id: string, x: number, y = 5, more: Partial<Marker> = {}): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'employee',
  zoneId: null,
  ageMs: 0,
  isStale: false,
  accuracy: null,
  position: { x, y },
  ...more
})
const idsOf = (markers: readonly Marker[]): readonly string[] => markers.map(({ id }) => id)

const panel = { width: 1200, height: 600 }
const WIDTH = 60
const arranged = (
  markers: readonly Marker[],
  scale: number,
  { selected = null, covered = [] }: { readonly selected?: string | null; readonly covered?: readonly Rect[] } = {}
) => arrange(markers, { view: { scale, x: 0, y: 0 }, panel, selected, covered, widthOf: () => WIDTH })

t.test('the arrangement of markers', async (t) => {
  /** Three markers at one place, two at another and one far away. */
  const markers = [
    ...['a', 'b', 'c'].map((id, index) => marker(id, 10 + index / 10)),
    ...['d', 'e'].map((id) => marker(id, 20)),
    marker('f', 40, 20)
  ]
  const clusterIds = (scale: number, selected: string | null = null) =>
    arranged(markers, scale, { selected }).clusters.map(({ items }) => idsOf(items))

  t.test('three markers that overlap are a cluster, unless the plan is zoomed in', async (t) => {
    t.same(clusterIds(5), [['a', 'b', 'c']])
    t.same(idsOf(arranged(markers, 5).singles), ['d', 'e', 'f'])
    t.same(clusterIds(CLUSTERS_BELOW), [])
  })

  t.test('the selected marker is not part of a cluster, is drawn last, and has no name', async (t) => {
    const { singles, names } = arranged(markers, 5, { selected: 'b' })
    t.same(clusterIds(5, 'b'), [])
    t.equal(idsOf(singles).at(-1), 'b')
    t.notOk(names.some(({ marker: { id } }) => id === 'b'))
  })

  t.test('no marker is lost or drawn twice, also at the boundary of a cell', async (t) => {
    const many = Array.from({ length: 1000 }, (_, index) => marker(`${index}`, (index * 7.3) % 60, (index * 3.1) % 25))
    const { singles, clusters } = clustersOf(many, 2)
    const all = [...singles, ...clusters.flatMap(({ items }) => items)]
    t.same([all.length, new Set(all).size], [1000, 1000])
    t.equal(clustersOf([marker('a', 0.99, 1), marker('b', 1.01, 0.99), marker('c', 1, 1)], 1).clusters.length, 1)
  })

  t.test('a cluster is at the current centre of its markers', async (t) => {
    const position = { x: 0, y: 0 }
    const cluster = { items: [{ id: 'a', position }, marker('b', 2, 4)] }
    t.same(centreOfCluster(cluster), { x: 1, y: 2 })
    position.x = 4
    t.same(centreOfCluster(cluster), { x: 3, y: 2 })
  })

  t.test('a name is to the right of its marker, else to its left, or left out', async (t) => {
    const sides = (shown: readonly Marker[], covered: readonly Rect[] = []) =>
      arranged(shown, 20, { covered }).names.map(({ marker: { id }, isLeft }) => `${id} ${isLeft ? 'left' : 'right'}`)
    const one = [marker('a', 10, 10)]
    const label = (x: number) => ({ x, y: 190, width: 100, height: 15 })
    t.same(sides(one), ['a right'])
    t.same(sides(one, [label(210)]), ['a left'], 'beside the label of a room')
    t.same(sides(one, [label(210), label(90)]), [])
    t.same(sides([marker('a', 59, 10)]), ['a left'], 'at the edge of the panel')
    t.same(sides([marker('a', 61, 10)]), [], 'outside of the panel')
    t.equal(sides([marker('cart', 9, 10, { kind: 'asset' }), marker('b', 9, 10.5)])[0], 'b right', 'people come first')
  })

  t.test('500 names never overlap each other or a label', async (t) => {
    const many = Array.from({ length: 500 }, (_, index) => marker(`${index}`, (index * 7.3) % 58, (index * 3.1) % 28))
    const covered = [{ x: 100, y: 100, width: 300, height: 60 }]
    const names = arranged(many, 20, { covered }).names.map(({ marker: { position }, isLeft }) => ({
      x: position.x * 20 + (isLeft ? -9 - WIDTH : 9),
      y: position.y * 20 - 8,
      width: WIDTH,
      height: 16
    }))
    const all = [...names, ...covered]
    t.ok(names.length > 15, `${names.length} names`)
    t.notOk(all.some((one, index) => all.slice(index + 1).some((other) => overlaps(one, other))))
  })

  t.test('hit testing finds the nearest marker within reach', async (t) => {
    t.equal(nearest(markers, { x: 19, y: 5 }, 2)?.id, 'd')
    t.equal(nearest(markers, { x: 30, y: 5 }, 2), undefined)
  })
})

t.test('the drawing of markers', async (t) => {
  const size = { width: 10, height: 10 }
  const sprite = (picture: string) => ({ picture, ...size })
  const sprites: Sprites = {
    kinds: {
      employee: sprite('employee'),
      visitor: sprite('visitor'),
      contractor: sprite('contractor'),
      'first-aider': sprite('first-aider'),
      asset: sprite('asset')
    },
    muster: { safe: sprite('safe'), missing: sprite('missing') },
    cluster: (count, muster) => sprite(`cluster of ${count}${muster ? ` ${muster}` : ''}`),
    name: sprite
  }
  const view = { scale: 10, x: 5, y: 5 }
  /** The copied pictures with their opacity, and where they are. */
  const drawn = (singles: readonly Marker[], clustered: readonly Marker[] = []) => {
    const { pen, calls } = recordingPen()
    const clusters = clustered.length > 0 ? [{ items: clustered }] : []
    drawMarkers(pen, { singles, clusters, names: [] }, sprites, view, { width: 200, height: 100 })
    t.equal(pen.globalAlpha, 1, 'the opacity is restored')
    return calls('drawImage').map(({ args: [picture, x], alpha }) => `${picture} ${alpha} at ${x}`)
  }

  t.test('each kind is one picture, centred at its position, and those outside the panel are skipped', async (t) => {
    t.same(
      drawn(MARKER_KINDS.map((kind, index) => marker(kind, index, 5, { kind }))),
      MARKER_KINDS.map((kind, index) => `${kind} 1 at ${10 * index}`)
    )
    t.same(
      drawn([-2, -1, 0, 19, 20, 21].map((x) => marker(`${x}`, x))).map((text) => text.split(' ').at(-1)),
      ['-10', '0', '190', '200']
    )
  })

  t.test('stale markers are dimmed, and a cluster only if all of its markers are stale', async (t) => {
    const stale = marker('a', 1, 5, { isStale: true })
    t.same(drawn([stale, marker('b', 2)]), ['employee 0.35 at 10', 'employee 1 at 20'])
    t.same(drawn([], [stale, stale]), ['cluster of 2 0.35 at 10'])
    t.same(drawn([], [stale, marker('b', 1)]), ['cluster of 2 1 at 10'])
  })

  t.test('the muster is shown at each marker, and one missing person makes a cluster missing', async (t) => {
    const [safe, missing] = [marker('a', 1, 5, { muster: 'safe' }), marker('b', 1, 5, { muster: 'missing' })]
    t.same(drawn([safe, missing, marker('c', 1)]), [
      ...['employee 1 at 10', 'safe 1 at 10', 'employee 1 at 10', 'missing 1 at 10', 'employee 1 at 10']
    ])
    t.same(drawn([], [safe, marker('d', 1)]), ['cluster of 2 safe 1 at 10'])
    t.same(drawn([], [safe, missing]), ['cluster of 2 missing 1 at 10'])
  })

  t.test('a frame with 500 markers copies one image for each marker and name, and creates no path', async (t) => {
    const many = Array.from({ length: 500 }, (_, index) => marker(`${index}`, index % 10, Math.floor(index / 10) / 10))
    const names = many.slice(0, 60).map((one) => ({ marker: one, isLeft: false }))
    const { pen, calls } = recordingPen()
    drawMarkers(pen, { singles: many, clusters: [], names }, sprites, view, panel)
    t.equal(calls('drawImage').length, 560)
    for (const call of ['beginPath', 'arc', 'stroke', 'fill', 'fillText']) t.equal(calls(call).length, 0, call)
  })

  t.test('the selected marker has a circle of its accuracy, unless it is not known', async (t) => {
    const circles = (accuracy: number | null) => {
      const { pen, calls } = recordingPen()
      drawAccuracy(pen, marker('a', 1, 5, { accuracy }), view, (token) => token)
      return calls('arc').map(({ args }) => args.slice(0, 3))
    }
    t.same(circles(1.5), [[15, 55, 15]])
    t.same(circles(null), [])
  })

  t.test('every kind has its own shape and colour, and long names are shortened', async (t) => {
    const appearances = MARKER_KINDS.map((kind) => APPEARANCES[kind])
    t.equal(new Set(appearances.map(({ path }) => path)).size, MARKER_KINDS.length)
    t.equal(new Set(appearances.map(({ colour }) => colour)).size, MARKER_KINDS.length)
    t.equal(kindOf('visitor', true), 'first-aider')
    t.equal(kindOf(null), 'employee')
    t.equal(markerLabel('😀'.repeat(200)), `${'😀'.repeat(27)}…`, 'no character is split')
  })
})

t.test('the last 15 minutes', async (t) => {
  const AT = Date.parse('2026-11-16T14:00:00Z')
  const floorOf = (...tracks: Track[]): FloorTracks => ({ from: new Date(AT).toISOString(), to: '', tracks })
  const track = (...points: Track['points']): Track => ({ transmitterId: 'A', points })
  /** East for ten seconds, a pause of ten seconds, then south into another zone. */
  const walk = track([0, 0, 5, '1'], [10_000, 10, 5, '1'], [20_000, 10, 5, '2'], [30_000, 10, 15, '2'])
  const describe = (id: string) => ({ name: id, kind: 'employee' as const })
  const placesAt = (floor: PastFloor, ms: number) => {
    floor.seek(AT + ms)
    return floor.markers.map(({ position: { x, y }, zoneId }) => [x, y, zoneId])
  }

  t.test('markers are between their stored positions, forwards and backwards', async (t) => {
    const floor = new PastFloor(floorOf(walk), describe)
    t.same(placesAt(floor, 5000), [[5, 5, '1']])
    t.same(placesAt(floor, 15_000), [[10, 5, '1']])
    t.same(placesAt(floor, 25_000), [[10, 10, '2']])
    t.same(placesAt(floor, 2500), [[2.5, 5, '1']])
    t.same(placesAt(floor, 30_000), [[10, 15, '2']], 'at the last position')
  })

  t.test('there is no marker before the first and after the last position', async (t) => {
    const floor = new PastFloor(floorOf(track([1000, 1, 1, null], [2000, 2, 2, null]), track()), describe)
    t.same(
      [999, 1000, 2001].map((ms) => placesAt(floor, ms).length),
      [0, 1, 0]
    )
  })

  t.test('a marker that was silent waits where it was', async (t) => {
    const floor = new PastFloor(floorOf(track([0, 0, 0, null], [300_000, 10, 0, null])), describe)
    t.same(placesAt(floor, 299_000), [[0, 0, null]])
    t.same(placesAt(floor, 300_000), [[10, 0, null]])
  })

  t.test(
    'a trail ends at the shown time, fades with its age, and has no line where the way is not known',
    async (t) => {
      const floor = floorOf(walk, track([40_000, 3, 3, null], [140_000, 9, 9, null]), { ...walk, transmitterId: 'B' })
      t.same(trailOf(floor, 'A', AT + 25_000, 100_000), [
        { from: { x: 0, y: 5 }, to: { x: 10, y: 5 }, age: 0.25 },
        { from: { x: 10, y: 5 }, to: { x: 10, y: 5 }, age: 0.15 },
        { from: { x: 10, y: 5 }, to: { x: 10, y: 10 }, age: 0.05 }
      ])
      t.equal(trailOf(floor, 'A', AT + 200_000, 100_000).length, 3)
      t.same(trailOf(floor, 'C', AT + 25_000, 100_000), [])
    }
  )
})
