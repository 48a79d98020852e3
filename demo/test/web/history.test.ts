import t from 'tap'
import { colourScale } from '../../web/floor-plan/colour-scale.js'
import { heatAt, heatMapLayer, heatOf, smoothed } from '../../web/floor-plan/heat-map-layer.js'
import type { Layer } from '../../web/floor-plan/layer.js'
import type { Marker } from '../../web/floor-plan/marker.js'
import { lengthText, scaleBarOf } from '../../web/floor-plan/scale-bar.js'
import { trailLayer } from '../../web/floor-plan/trail-layer.js'
import { crossesWall } from '../../web/floor-plan/walls.js'
import { Playback } from '../../web/history/playback.js'
import {
  dateText,
  dayAround,
  LEAD_MS,
  onDate,
  partAt,
  rangeOfPart,
  textOfTime,
  timeOfText
} from '../../web/history/playback-time.js'
import { trailOf } from '../../web/history/trail.js'
import { isKnownWay } from '../../web/history/ways.js'
import type { HeatMap, Track } from '../../web/types.js'
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
    const playback = new Playback([walk], [], describe)
    t.same(placesAt(playback, 5000), [['A', 5, 5, '1']])
    t.same(placesAt(playback, 15_000), [['A', 10, 5, '1']])
    t.same(placesAt(playback, 25_000), [['A', 10, 10, '2']])
    t.same(placesAt(playback, 2500), [['A', 2.5, 5, '1']], 'backwards too')
    t.same(placesAt(playback, 30_000), [['A', 10, 15, '2']], 'at the last position')
  })

  t.test('a playback has no markers before the first and after the last position of a track', async (t) => {
    const playback = new Playback([track('B', [1000, 1, 1, null], [2000, 2, 2, null])], [], describe)
    t.same(placesAt(playback, 999), [])
    t.equal(placesAt(playback, 1000).length, 1)
    t.same(placesAt(playback, 2001), [])
    t.same(placesAt(new Playback([track('C')], [], describe), 0), [], 'a track without points')
  })

  t.test('a playback moves its markers in place', async (t) => {
    const playback = new Playback([walk], [], describe)
    playback.seek(1000)
    const [marker] = playback.markers
    playback.seek(25_000)
    t.same([marker?.position, marker?.zoneId], [{ x: 10, y: 10 }, '2'])
  })

  t.test('a playback accepts two positions at the same time', async (t) => {
    const playback = new Playback([track('A', [0, 1, 1, null], [0, 2, 2, null])], [], describe)
    t.same(placesAt(playback, 0), [['A', 2, 2, null]])
  })
})

/** A wall from north to south, with a door in the middle. */
const walls = [
  [5, 0, 5, 4],
  [5, 6, 5, 10]
] as const

t.test('a way', async (t) => {
  t.test('a way crosses a wall, but not a door', async (t) => {
    t.equal(crossesWall({ x: 0, y: 2 }, { x: 10, y: 2 }, walls), true)
    t.equal(crossesWall({ x: 0, y: 5 }, { x: 10, y: 5 }, walls), false)
    t.equal(crossesWall({ x: 0, y: 2 }, { x: 4, y: 9 }, walls), false, 'on one side')
    t.equal(crossesWall({ x: 0, y: 20 }, { x: 10, y: 20 }, walls), false, 'beside the wall')
    t.equal(crossesWall({ x: 0, y: 2 }, { x: 10, y: 2 }, []), false, 'a plan without walls')
  })

  t.test('a way is not known through a wall, or if it takes longer than the interval of positions', async (t) => {
    t.equal(isKnownWay([0, 0, 2, null], [10_000, 10, 2, null], walls), false)
    t.equal(isKnownWay([0, 0, 5, null], [10_000, 10, 5, null], walls), true)
    t.equal(isKnownWay([0, 0, 5, null], [300_000, 1, 5, null], walls), false)
  })

  t.test('a marker waits where its way is not known, and then is at the next position', async (t) => {
    const playback = new Playback(
      [track('A', [0, 0, 2, '1'], [10_000, 10, 2, '2'], [20_000, 10, 4, '2'])],
      walls,
      describe
    )
    const xAt = (ms: number) => {
      playback.seek(ms)
      return playback.markers[0]?.position
    }
    t.same(xAt(9000), { x: 0, y: 2 })
    t.same(xAt(10_000), { x: 10, y: 2 })
    t.same(xAt(15_000), { x: 10, y: 3 })
    t.same(xAt(5000), { x: 0, y: 2 }, 'backwards too')
  })
})

t.test('a trail', async (t) => {
  const linesOf = (tracks: readonly Track[], fromMs: number, toMs: number) =>
    trailOf(tracks, fromMs, toMs, walls).lines.map(({ from, to, isKnown }) => [from.x, from.y, to.x, to.y, isKnown])

  t.test('a trail is the part of a path between two times', async (t) => {
    const open = (fromMs: number, toMs: number) => trailOf([walk], fromMs, toMs, [])
    t.same(
      open(5000, 25_000).lines.map(({ from, to, part }) => [from, to, part]),
      [
        [{ x: 5, y: 5 }, { x: 10, y: 5 }, 0.125],
        [{ x: 10, y: 5 }, { x: 10, y: 10 }, 0.875]
      ],
      'without the pause, in the colours of their time'
    )
    t.same(open(-60_000, 5000).last, { x: 5, y: 5 })
    t.same(open(60_000, 90_000), { lines: [], last: null }, 'after the end')
    t.same(trailOf([track('A', [0, 1, 1, null])], 0, 10, []), { lines: [], last: { x: 1, y: 1 } }, 'one position')
    t.same(trailOf([], 0, 10, []), { lines: [], last: null })
  })

  t.test('a trail is broken where the transmitter was elsewhere', async (t) => {
    const before = track('A', [0, 1, 1, null], [10_000, 3, 1, null])
    const after = track('A', [30_000, 1, 9, null], [40_000, 3, 9, null])
    t.same(linesOf([before, after], 0, 60_000), [
      [1, 1, 3, 1, true],
      [1, 9, 3, 9, true]
    ])
  })

  t.test(
    'a trail through a wall is marked as not known, and not drawn before the transmitter has arrived',
    async (t) => {
      const through = track('A', [0, 0, 2, null], [10_000, 10, 2, null])
      t.same(linesOf([through], 0, 10_000), [[0, 2, 10, 2, false]])
      t.same(linesOf([through], 0, 5000), [])
      t.same(trailOf([through], 0, 5000, walls).last, { x: 0, y: 2 })
    }
  )
})

t.test('the time of a playback', async (t) => {
  const at = new Date(2026, 10, 16, 14, 3, 5).getTime()
  const stored = { fromMs: at - 3 * 86_400_000, toMs: at + 3_600_000 }

  t.test('the time of a playback in the URL is restored', async (t) => {
    t.equal(timeOfText(textOfTime(at)), at)
    t.match(textOfTime(at), /^2026-11-1\dT\d\d:03:05Z$/)
    for (const text of [null, '', 'yesterday', '2026-13-41T99:00:00Z', '2026-11-16', '1794837785000'])
      t.equal(timeOfText(text), null, String(text))
  })

  t.test('the day of a playback ends where the stored time ends', async (t) => {
    const { fromMs, toMs } = dayAround(at, stored)
    t.same([new Date(fromMs).getHours(), new Date(fromMs).getDate(), toMs], [0, 16, stored.toMs])
    t.equal(dayAround(at - 3 * 86_400_000, stored).fromMs, stored.fromMs)
    t.equal(dayAround(at - 86_400_000, stored).toMs, fromMs, 'a complete day')
  })

  t.test('another date keeps the time of day', async (t) => {
    const other = new Date(onDate(at, '2026-11-14') ?? 0)
    t.same([other.getDate(), other.getHours(), other.getMinutes(), other.getSeconds()], [14, 14, 3, 5])
    t.equal(dateText(at), '2026-11-16')
    t.equal(onDate(at, ''), null)
  })

  t.test('the requested parts are an hour long, and overlap by the length of a trail', async (t) => {
    const { fromMs, toMs } = rangeOfPart(partAt(at))
    t.equal(toMs - fromMs, 3_600_000)
    t.ok(fromMs + LEAD_MS <= at && at < toMs)
    t.equal(rangeOfPart(partAt(at) + 1).fromMs, toMs - LEAD_MS)
  })
})

t.test('a scale bar has a round length', async (t) => {
  const barOf = (scale: number) => `${lengthText(scaleBarOf(scale).metres)} ${Math.round(scaleBarOf(scale).pixels)}`
  t.same([0.05, 5, 14.3, 40, 120].map(barOf), ['1 km 50', '10 m 50', '5 m 72', '2 m 80', '50 cm 60'])
})

t.test('a colour scale is continuous', async (t) => {
  const scale = colourScale(['rgb(0, 0, 0)', 'rgb(100, 0, 200)', 'rgb(200, 0, 0)'])
  t.same([-1, 0, 0.25, 0.5, 1, 7].map(scale), [
    ...['rgb(0, 0, 0)', 'rgb(0, 0, 0)', 'rgb(50, 0, 100)', 'rgb(100, 0, 200)', 'rgb(200, 0, 0)', 'rgb(200, 0, 0)']
  ])
  t.equal(colourScale(['--a', '--b'])(0.9), '--b', 'another notation has steps')
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

  t.test('the heat map layer colours cells with people by their part of the longest stay', async (t) => {
    const heat = heatOf(map, open)
    t.same([heat.max, heatAt(heat, { x: 2.5, y: 0.5 }), heatAt(heat, { x: 3, y: 0.9 })], [45, 30, 45])
    t.same(
      [heatAt(heat, { x: 4.1, y: 0 }), heatAt(heat, { x: -1, y: 0 }), heatAt(heat, { x: 1, y: 2 })],
      [null, null, null]
    )
    const cells = drawn(heatMapLayer(heat))('fillRect')
    t.same(
      cells.map(({ args, fill }) => [...args, fill]),
      [
        [23, 4, 10, 10, '--heat-3'],
        [33, 4, 10, 10, '--heat-4']
      ]
    )
    t.same(drawn(heatMapLayer(heatOf({ ...map, seconds: [0, 0, 0, 0] }, open)))('fillRect'), [])
  })

  t.test('the heat map layer leaves out cells outside of the outer walls, except in zones', async (t) => {
    const full = { ...map, seconds: [9, 9, 9, 9] }
    const columnsOf = (zones: Parameters<typeof heatOf>[1]['zones']) =>
      drawn(
        heatMapLayer(
          heatOf(full, {
            walls: [
              [0, 0, 2, 0],
              [2, 0, 2, 1]
            ],
            zones
          })
        )
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

t.test('the trail layer draws known ways as lines and others as dots, up to the marker', async (t) => {
  const [a, b, c] = [
    { x: 0, y: 0 },
    { x: 1, y: 0 },
    { x: 9, y: 0 }
  ]
  const lines = [
    { from: a, to: b, part: 0, isKnown: true },
    { from: b, to: c, part: 1, isKnown: false }
  ]
  const calls = drawn(trailLayer({ lines, last: c }, { x: 9, y: 2 }, walls))
  t.same(
    calls('lineTo').map(({ args }) => args),
    [
      [13, 4],
      [93, 4],
      [93, 24]
    ]
  )
  t.same(
    calls('setLineDash').map(({ args }) => (args[0] as number[]).length > 0),
    [false, true, false, false],
    'the last one resets it'
  )
  t.same(
    calls('stroke').map(({ stroke }) => stroke),
    ['--trail-1', '--trail-3', '--trail-3']
  )
  t.equal(drawn(trailLayer({ lines, last: null }, { x: 9, y: 2 }, walls))('stroke').length, 2, 'it has left')
  t.same(drawn(trailLayer({ lines: [], last: { x: 4, y: 2 } }, { x: 6, y: 2 }, walls))('setLineDash')[0]?.args, [
    [1, 6]
  ])
})
