import { readFileSync } from 'node:fs'
import t from 'tap'
import { ambientMarks } from '../../../demo/web/floor-plan/ambient.js'
import { drawMarkers, type Marker, type Pen } from '../../../demo/web/floor-plan/draw.js'

/** Records the copied images and their opacity. */
const recordingPen = () => {
  const pictures: string[] = []
  const pen: Pen<string> = { globalAlpha: 1, drawImage: (picture) => pictures.push(`${picture} ${pen.globalAlpha}`) }
  return { pen, pictures }
}

const sprites = { person: 'a person', thing: 'a thing' }

const marker = (id: string, x: number, more: Partial<Marker> = {}): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'person',
  zoneId: null,
  ageMs: 0,
  isStale: false,
  position: { x, y: 5 },
  ...more
})

t.test('drawing', async (t) => {
  t.test('drawing copies one image per marker', async (t) => {
    const { pen, pictures } = recordingPen()
    const markers = Array.from({ length: 300 }, (_, at) => marker(String(at), at % 20))
    drawMarkers(pen, markers, sprites, 10)

    t.equal(pictures.length, 300)
  })

  t.test('drawing dims stale markers and restores the opacity', async (t) => {
    const { pen, pictures } = recordingPen()
    const looks = [{}, { isStale: true }, { kind: 'thing' as const }, { kind: 'thing' as const, isStale: true }]
    drawMarkers(
      pen,
      looks.map((more, at) => marker(String(at), at, more)),
      sprites,
      10
    )

    t.same(pictures, ['a person 1', 'a person 0.35', 'a thing 1', 'a thing 0.35'])
    t.equal(pen.globalAlpha, 1)
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
        t.ok(between('accent', ground) >= 3, 'people')
        t.ok(between('muted', ground) >= 3, 'things')
      })
    }
    t.test(`the contrast of name tags in the ${theme} theme is sufficient`, async (t) => {
      t.ok(between('ground', 'text') >= 4.5)
    })
  }
})
