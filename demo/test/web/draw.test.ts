import { readFileSync } from 'node:fs'
import t from 'tap'
import { ambientMarks } from '../../web/floor-plan/ambient.js'
import { drawAccuracy, drawHighlight, drawMarkers, type Sprites } from '../../web/floor-plan/draw-markers.js'
import { APPEARANCES, MARKER_KINDS, type Marker } from '../../web/floor-plan/marker.js'
import type { Name } from '../../web/floor-plan/name-places.js'
import type { Rect } from '../../web/floor-plan/plan.js'
import { recordingPen } from './recording-pen.js'

const size = { width: 10, height: 10 }
const sprites: Sprites = {
  kinds: {
    employee: { picture: 'employee', ...size },
    visitor: { picture: 'visitor', ...size },
    contractor: { picture: 'contractor', ...size },
    'first-aider': { picture: 'first-aider', ...size },
    asset: { picture: 'asset', ...size }
  },
  muster: { safe: { picture: 'safe', ...size }, missing: { picture: 'missing', ...size } },
  cluster: (count, muster) => ({ picture: `cluster of ${count}${muster ? ` ${muster}` : ''}`, ...size }),
  name: (text) => ({ picture: text, ...size })
}
const view = { scale: 10, x: 5, y: 5 }
const panel = { width: 200, height: 100 }

const marker = (id: string, x: number, more: Partial<Marker> = {}): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'employee',
  zoneId: null,
  ageMs: 0,
  isStale: false,
  accuracy: null,
  position: { x, y: 5 },
  ...more
})

/** The copied pictures with their opacity, and where they are. */
const drawn = (
  singles: readonly Marker[],
  clustered: readonly Marker[] = [],
  names: readonly Name[] = [],
  covered: readonly Rect[] = []
) => {
  const { pen, calls } = recordingPen()
  const clusters = clustered.length > 0 ? [{ items: clustered }] : []
  drawMarkers(pen, { singles, clusters, names }, sprites, view, panel, covered)
  t.equal(pen.globalAlpha, 1, 'the opacity is restored')
  const copies = calls('drawImage')
  return {
    pictures: copies.map(({ args: [picture], alpha }) => `${picture} ${alpha}`),
    places: copies.map(({ args }) => args.slice(1))
  }
}

t.test('drawing', async (t) => {
  t.test('drawing copies one image per marker, centred at its position', async (t) => {
    const { pictures, places } = drawn(MARKER_KINDS.map((kind, index) => marker(kind, index, { kind })))

    t.same(pictures, ['employee 1', 'first-aider 1', 'visitor 1', 'contractor 1', 'asset 1'])
    t.same(places[1], [10, 50, 10, 10])
  })

  t.test('drawing adds the sign of the muster, and one missing person makes a cluster missing', async (t) => {
    const [safe, missing] = [marker('a', 1, { muster: 'safe' }), marker('b', 2, { muster: 'missing', isStale: true })]
    t.same(drawn([safe, missing, marker('c', 3, { muster: null })]).pictures, [
      ...['employee 1', 'safe 1', 'employee 0.35', 'missing 0.35', 'employee 1']
    ])
    t.same(drawn([], [safe, marker('d', 1)]).pictures, ['cluster of 2 safe 1'])
    t.same(drawn([], [safe, missing]).pictures, ['cluster of 2 missing 1'])
  })

  t.test('drawing skips markers outside the panel', async (t) => {
    const { places } = drawn([-2, -1, 0, 19, 20, 21].map((x) => marker(String(x), x)))
    t.same(
      places.map(([x]) => x),
      [-10, 0, 190, 200]
    )
  })

  t.test('drawing dims stale markers', async (t) => {
    const { pictures } = drawn([marker('a', 1), marker('b', 2, { isStale: true }), marker('c', 3)])
    t.same(pictures, ['employee 1', 'employee 0.35', 'employee 1'])
  })

  t.test('a cluster is dimmed only if all its markers are stale', async (t) => {
    const stale = [1, 1, 1].map((x, index) => marker(String(index), x, { isStale: true }))
    t.same(drawn([], stale).pictures, ['cluster of 3 0.35'])
    t.same(drawn([], [...stale, marker('live', 1)]).pictures, ['cluster of 4 1'])
  })

  t.test('a name is beside its marker', async (t) => {
    const one = marker('a', 1)
    const placeOf = (side: Name['side']) => drawn([one], [], [{ marker: one, side }]).places[1]
    t.same(placeOf('right'), [24, 47, 10, 10])
    t.same(placeOf('left'), [-4, 47, 10, 10])
    t.same(placeOf('below'), [10, 64, 10, 10])
    t.same(placeOf('above'), [10, 30, 10, 10])
  })

  t.test('a name that moves onto the label of a room is not drawn', async (t) => {
    const one = marker('a', 1)
    const label = { x: 30, y: 50, width: 50, height: 20 }
    t.equal(drawn([one], [], [{ marker: one, side: 'right' }], [label]).pictures.length, 1)
  })

  t.test('a name that moves onto another name is not drawn', async (t) => {
    const [one, other] = [marker('a', 1), marker('b', 1.5)]
    const named = (marker: Marker): Name => ({ marker, side: 'right' })
    t.same(drawn([], [], [named(one), named(other)]).pictures, ['Person a 1'])
    t.same(drawn([], [], [named(one), named(marker('c', 2))]).pictures, ['Person a 1', 'Person c 1'])
  })

  t.test('a frame with 500 markers copies one image for each marker and name, and creates no path', async (t) => {
    const many = Array.from({ length: 500 }, (_, index) =>
      marker(String(index), index % 10, { position: { x: index % 10, y: Math.floor(index / 10) * 1.6 } })
    )
    const { pen, calls } = recordingPen()
    const names = many.slice(0, 60).map((one): Name => ({ marker: one, side: 'right' }))
    drawMarkers(pen, { singles: many.slice(0, 60), clusters: [], names }, sprites, view, panel, [])
    drawMarkers(pen, { singles: many, clusters: [], names: [] }, sprites, { ...view, scale: 1 }, panel, [])
    t.equal(calls('drawImage').length, 60 + 60 + 500)
    for (const call of ['beginPath', 'arc', 'stroke', 'fill', 'fillText', 'measureText'])
      t.equal(calls(call).length, 0, call)
  })

  t.test('the selected marker has a circle of its accuracy, unless it is not known', async (t) => {
    const circles = (accuracy: number | null) => {
      const { pen, calls } = recordingPen()
      drawAccuracy(pen, marker('a', 1, { accuracy }), view, (token) => token)
      t.equal(pen.globalAlpha, 1)
      return calls('arc').map(({ args }) => args.slice(0, 3))
    }
    t.same(circles(1.5), [[15, 55, 15]])
    t.same(circles(null), [])
  })

  t.test('the marker that is pointed at has a ring and its name', async (t) => {
    const { pen, calls } = recordingPen()
    drawHighlight(pen, marker('a', 1), { names: [] }, sprites, view, (token) => token)
    t.same(calls('arc')[0]?.args.slice(0, 2), [15, 55])
    t.equal(calls('drawImage')[0]?.args[0], 'Person a')
    const named = { names: [{ marker: marker('a', 1), side: 'right' as const }] }
    drawHighlight(pen, marker('a', 1), named, sprites, view, (token) => token)
    t.equal(calls('drawImage').length, 1, 'a name that the plan already shows is not repeated')
  })

  t.test('every kind has its own shape and colour', async (t) => {
    const appearances = MARKER_KINDS.map((kind) => APPEARANCES[kind])
    t.equal(new Set(appearances.map(({ path }) => path)).size, MARKER_KINDS.length)
    t.equal(new Set(appearances.map(({ colour }) => colour)).size, MARKER_KINDS.length)
  })
})

t.test('ambient devices', async (t) => {
  const device = (deviceId: string, receiverId: string, rssi: number) => ({
    deviceId,
    deviceType: 'phone',
    manufacturer: null,
    receiverId,
    rssi,
    timestamp: 0
  })

  const receivers = [{ id: 'r-1', position: { x: 5, y: 5 } }, { id: 'r-2' }]

  t.test('ambient devices are closer to their receiver with a stronger signal', async (t) => {
    const distance = (rssi: number): number => {
      const [mark] = ambientMarks([device('a', 'r-1', rssi)], receivers)
      return mark ? Math.hypot(mark.position.x - 5, mark.position.y - 5) : Number.NaN
    }

    t.ok(distance(-50) < distance(-80))
    t.ok(distance(-150) < 6)
  })

  t.test('ambient devices keep their position', async (t) => {
    t.same(ambientMarks([device('a', 'r-1', -60)], receivers), ambientMarks([device('a', 'r-1', -60)], receivers))
  })

  t.test('ambient devices of other floors or receivers without a position are not shown', async (t) => {
    t.same(ambientMarks([device('a', 'r-9', -60), device('b', 'r-2', -60)], receivers), [])
  })
})

const luminance = (hex: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const contrast = (one: string, other: string): number => {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

/** The colours of both pages in the light and the dark theme. */
const tokens = new Map(
  [...readFileSync('src/ui/tokens.css', 'utf8').matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(
    ([, name = '', light = '', dark = '']) => [name, [light, dark]]
  )
)

t.test('the colours of the plan', async (t) => {
  for (const [at, theme] of ['light', 'dark'].entries()) {
    const between = (one: string, other: string): number =>
      contrast(tokens.get(one)?.[at] ?? '', tokens.get(other)?.[at] ?? '')
    for (const ground of ['surface', 'sunken', 'danger-soft', 'good-soft', 'accent-soft']) {
      t.test(`the contrast on ${ground} in the ${theme} theme is sufficient`, async (t) => {
        t.ok(between('muted', ground) >= 4.5, 'names')
        t.ok(between('text', ground) >= 4.5, 'counts')
        for (const kind of MARKER_KINDS)
          t.ok(between(APPEARANCES[kind].colour.slice(2), ground) >= 3, `markers: ${kind}`)
      })
    }
    t.test(`the contrast of name tags in the ${theme} theme is sufficient`, async (t) => {
      t.ok(between('ground', 'text') >= 4.5)
    })
  }
})
