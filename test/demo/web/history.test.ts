import t from 'tap'
import { heatMapLayer, smoothed } from '../../../demo/web/floor-plan/heat-map-layer.js'
import type { Layer } from '../../../demo/web/floor-plan/layer.js'
import type { Marker } from '../../../demo/web/floor-plan/marker.js'
import { trailLayer } from '../../../demo/web/floor-plan/trail-layer.js'
import { Playback, trailsOf } from '../../../demo/web/history/playback.js'
import type { HeatMap, Track } from '../../../demo/web/types.js'
import { recordingPen } from './recording-pen.js'

const track = (transmitterId: string, ...points: Track['points']): Track => ({ transmitterId, points })
const describe = (id: string): Pick<Marker, 'name' | 'kind'> => ({ name: `Person ${id}`, kind: 'employee' })

/** East for ten seconds, a pause of ten seconds, then south into another zone. */
const walk = track('A', [0, 0, 5, '1'], [10_000, 10, 5, '1'], [20_000, 10, 5, '2'], [30_000, 10, 15, '2'])

t.test('a playback', async (t) => {
  const placesAt = (playback: Playback, ms: number): unknown[] => {
    playback.seek(ms)
    return playback.markers.map(({ id, position: { x, y }, zoneId }) => [id, x, y, zoneId])
  }

  t.test('a playback interpolates between stored positions', async (t) => {
    const playback = new Playback([walk], describe)
    t.same(placesAt(playback, 5000), [['A', 5, 5, '1']])
    t.same(placesAt(playback, 15_000), [['A', 10, 5, '1']])
    t.same(placesAt(playback, 25_000), [['A', 10, 10, '2']])
    t.same(placesAt(playback, 2500), [['A', 2.5, 5, '1']], 'backwards too')
    t.same(placesAt(playback, 30_000), [['A', 10, 15, '2']], 'at the last position')
  })

  t.test('a playback has no markers before the first and after the last position of a track', async (t) => {
    const playback = new Playback([track('B', [1000, 1, 1, null], [2000, 2, 2, null])], describe)
    t.same(placesAt(playback, 999), [])
    t.equal(placesAt(playback, 1000).length, 1)
    t.same(placesAt(playback, 2001), [])
    t.same(placesAt(new Playback([track('C')], describe), 0), [], 'a track without points')
  })

  t.test('a playback moves its markers in place', async (t) => {
    const playback = new Playback([walk], describe)
    playback.seek(1000)
    const [marker] = playback.markers
    playback.seek(25_000)
    t.same([marker?.position, marker?.zoneId], [{ x: 10, y: 10 }, '2'])
  })

  t.test('a playback accepts two positions at the same time', async (t) => {
    const playback = new Playback([track('A', [0, 1, 1, null], [0, 2, 2, null])], describe)
    t.same(placesAt(playback, 0), [['A', 2, 2, null]])
  })
})

t.test('a trail is the part of a path between two times', async (t) => {
  const pointsOf = (fromMs: number, toMs: number) =>
    trailsOf([walk], fromMs, toMs).flatMap(({ points }) => points.map(({ x, y }) => [x, y]))
  t.same(pointsOf(5000, 25_000), [
    [5, 5],
    [10, 5],
    [10, 5],
    [10, 10]
  ])
  t.same(pointsOf(-60_000, 5000), [
    [0, 5],
    [5, 5]
  ])
  t.same(pointsOf(31_000, 40_000), [], 'after the end')
  t.same(trailsOf([track('A', [0, 1, 1, null])], 0, 10), [], 'one position is no line')
})

/** Draws a layer at 10 pixels per metre. Colours are the names of their tokens. */
const drawn = (layer: Layer) => {
  const { pen, calls } = recordingPen()
  layer.draw({ pen, view: { scale: 10, x: 3, y: 4 }, panel: { width: 100, height: 100 }, colour: (token) => token })
  t.equal(pen.globalAlpha, 1, 'a layer restores the opacity')
  return calls
}

t.test('the heat map layer', async (t) => {
  const map: HeatMap = { cell: 1, columns: 4, rows: 1, seconds: [0, 0, 0, 90] }
  const open = { walls: [], zones: [] }

  t.test('the heat map layer smooths the counts', async (t) => {
    t.same(smoothed(map), [0, 0, 30, 45])
    t.same(smoothed({ ...map, columns: 0, rows: 0, seconds: [] }), [])
  })

  t.test('the heat map layer draws cells with people, the fullest one in the strongest colour', async (t) => {
    const cells = drawn(heatMapLayer(map, open))('fillRect')
    t.same(
      cells.map(({ args, alpha }) => [...args, alpha.toFixed(2)]),
      [
        [23, 4, 10, 10, '0.45'],
        [33, 4, 10, 10, '0.65']
      ]
    )
    t.same(drawn(heatMapLayer({ ...map, seconds: [0, 0, 0, 0] }, open))('fillRect'), [])
  })

  t.test('the heat map layer leaves out cells outside of the outer walls, except in zones', async (t) => {
    const full = { ...map, seconds: [9, 9, 9, 9] }
    const columnsOf = (zones: Parameters<typeof heatMapLayer>[1]['zones']) =>
      drawn(
        heatMapLayer(full, {
          walls: [
            [0, 0, 2, 0],
            [2, 0, 2, 1]
          ],
          zones
        })
      )('fillRect').map(({ args }) => args[0])
    t.same(columnsOf([]), [3, 13])
    const terrace = {
      id: '1',
      name: 'Terrace',
      polygon: [
        [3, 0],
        [4, 0],
        [4, 1],
        [3, 1]
      ]
    }
    t.same(columnsOf([terrace]), [3, 13, 33])
  })
})

t.test('the trail layer draws paths up to the markers and emphasises the selected one', async (t) => {
  const points = [
    { x: 0, y: 0 },
    { x: 1, y: 0 }
  ]
  const marker: Marker = { id: 'A', ...describe('A'), zoneId: null, ageMs: 0, isStale: false, position: { x: 1, y: 2 } }
  const layer = trailLayer(
    [
      { id: 'A', points },
      { id: 'B', points }
    ],
    [marker],
    'A'
  )
  const calls = drawn(layer)
  t.same(
    calls('lineTo').map(({ args }) => args),
    [
      ...[
        [3, 4],
        [13, 4],
        [13, 24]
      ],
      ...[
        [3, 4],
        [13, 4]
      ]
    ]
  )
  t.same(
    calls('stroke').map(({ stroke, alpha }) => [stroke, alpha]),
    [
      ['--accent-strong', 1],
      ['--accent', 0.45]
    ]
  )
})
