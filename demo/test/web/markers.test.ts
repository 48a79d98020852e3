import t from 'tap'
import { arrange, CLUSTERS_BELOW, centreOfCluster, clustersOf, NAME_GAP } from '../../web/floor-plan/arrangement.js'
import { APPEARANCES, kindOf, MARKER_KINDS, type Marker, musterOf } from '../../web/floor-plan/marker.js'
import { overlaps } from '../../web/floor-plan/plan.js'
import { PastFloor, trailOf } from '../../web/floor-plan/tracks.js'
import type { FloorTracks, Track } from '../../web/types.js'

const marker = (id: string, x: number, y = 5, more: Partial<Marker> = {}): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'employee',
  zoneId: null,
  ageMs: 0,
  isStale: false,
  position: { x, y },
  ...more
})
const idsOf = (markers: readonly Marker[]): readonly string[] => markers.map(({ id }) => id)

const PANEL = { width: 1200, height: 600 }
const arranged = (markers: readonly Marker[], scale: number, selected: string | null = null) =>
  arrange(markers, { view: { scale, x: 0, y: 0 }, panel: PANEL, selected })

t.test('the arrangement of markers', async (t) => {
  /** Three markers at one place, two at another and one far away. */
  const markers = [
    ...['a', 'b', 'c'].map((id, index) => marker(id, 10 + index / 10)),
    ...['d', 'e'].map((id) => marker(id, 20)),
    marker('f', 40, 20)
  ]
  const namedIn = (shown: readonly Marker[], selected: string | null = null) =>
    idsOf([...arranged(shown, 20, selected).names.keys()])

  t.test('three markers that overlap are a cluster, unless the plan is zoomed in', async (t) => {
    const { singles, clusters } = arranged(markers, 5)
    t.same(clusters.map(idsOf), [['a', 'b', 'c']])
    t.same(idsOf(singles), ['d', 'e', 'f'])
    t.same(arranged(markers, CLUSTERS_BELOW).clusters, [])
  })

  t.test('the selected marker is not part of a cluster, is drawn last, and has no name', async (t) => {
    const { singles, clusters } = arranged(markers, 5, 'b')
    t.same(clusters, [])
    t.equal(idsOf(singles).at(-1), 'b')
    t.same(namedIn([marker('a', 10), marker('b', 30)], 'b'), ['a'])
  })

  t.test('no marker is lost or drawn twice', async (t) => {
    const many = Array.from({ length: 1000 }, (_, index) => marker(`${index}`, (index * 7.3) % 60, (index * 3.1) % 25))
    const { singles, clusters } = clustersOf(many, 2)
    const all = [...singles, ...clusters.flat()]
    t.same([all.length, new Set(all).size], [1000, 1000])
  })

  t.test('a cluster is at the current centre of its markers, and one missing person makes it missing', async (t) => {
    const position = { x: 0, y: 0 }
    const moving = { ...marker('a', 0), position }
    const cluster = [moving, marker('b', 2, 4)]
    t.same(centreOfCluster(cluster), { x: 1, y: 2 })
    position.x = 4
    t.same(centreOfCluster(cluster), { x: 3, y: 2 })
    const [safe, missing] = [marker('a', 1, 5, { muster: 'safe' }), marker('b', 1, 5, { muster: 'missing' })]
    t.same([musterOf([safe, missing]), musterOf([safe, moving]), musterOf(cluster)], ['missing', 'safe', null])
  })

  t.test('a name that has no room or is outside of the panel is left out, and people come first', async (t) => {
    t.same(namedIn([marker('a', 10, 10)]), ['a'])
    t.same(namedIn([marker('a', 10, 10), marker('b', 11.5, 10)]), ['b'], 'another marker')
    const covered = [{ x: 210, y: 190, width: 100, height: 15 }]
    const view = { scale: 20, x: 0, y: 0 }
    const { names } = arrange([marker('a', 10, 10)], { view, panel: PANEL, selected: null, covered })
    t.equal(names.size, 0, 'the label of a room')
    t.same(namedIn([marker('a', 59, 10)]), [], 'at the edge of the panel')
    t.same(namedIn([marker('cart', 9, 10, { kind: 'asset' }), marker('b', 9, 10.5)]), ['b'])
  })

  t.test('names never overlap', async (t) => {
    const many = Array.from({ length: 100 }, (_, index) => marker(`${index}`, (index * 7.3) % 58, (index * 3.1) % 28))
    const names = [...arranged(many, 20).names].map(([{ position }, width]) => {
      return { x: position.x * 20 + NAME_GAP, y: position.y * 20 - 8, width, height: 16 }
    })
    t.ok(names.length > 15, `${names.length} names`)
    t.notOk(names.some((one, index) => names.slice(index + 1).some((other) => overlaps(one, other))))
  })
})

t.test('every kind has its own shape and colour', async (t) => {
  const appearances = MARKER_KINDS.map((kind) => APPEARANCES[kind])
  t.equal(new Set(appearances.map(({ path }) => path)).size, MARKER_KINDS.length)
  t.equal(new Set(appearances.map(({ colour }) => colour)).size, MARKER_KINDS.length)
  t.equal(kindOf('visitor', true), 'first-aider')
  t.equal(kindOf(null), 'employee')
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
