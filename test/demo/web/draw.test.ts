import t from 'tap'
import { ambientMarks } from '../../../demo/web/floor-plan/ambient.js'
import {
  drawAmbient,
  drawMarkers,
  drawPlan,
  type Marker,
  type Pen,
  spritesOf
} from '../../../demo/web/floor-plan/draw.js'
import { darkPalette, lightPalette, type Palette } from '../../../demo/web/floor-plan/palette.js'
import type { Plan } from '../../../demo/web/floor-plan/plan.js'

const recordingPen = () => {
  const calls: string[] = []
  const texts: string[] = []
  const pictures: string[] = []
  const note =
    (name: string) =>
    (...args: unknown[]): void => {
      calls.push(name)
      if (name === 'fillText') texts.push(String(args[0]))
      if (name === 'drawImage') pictures.push(String(args[0]))
    }
  const pen: Pen<string> = {
    fillStyle: '',
    strokeStyle: '',
    lineWidth: 1,
    lineCap: '',
    globalAlpha: 1,
    font: '',
    textAlign: '',
    textBaseline: '',
    beginPath: note('beginPath'),
    closePath: note('closePath'),
    moveTo: note('moveTo'),
    lineTo: note('lineTo'),
    arc: note('arc'),
    rect: note('rect'),
    roundRect: note('roundRect'),
    fill: note('fill'),
    stroke: note('stroke'),
    fillText: note('fillText'),
    drawImage: note('drawImage'),
    measureText: (text) => ({ width: text.length * 7 })
  }
  return { pen, calls, texts, pictures, count: (name: string) => calls.filter((call) => call === name).length }
}

const square = (from: number, size: number) => [
  { x: from, y: 0 },
  { x: from + size, y: 0 },
  { x: from + size, y: size },
  { x: from, y: size }
]

const zone = { kind: 'office', isRestricted: false, isMusterPoint: false }
const plan: Plan = {
  floorId: 'f-1',
  name: 'Ground floor',
  imageUrl: null,
  width: 20,
  height: 10,
  walls: [
    [0, 0, 20, 0],
    [0, 0, 0, 10]
  ],
  zones: [
    { ...zone, id: '1', name: 'Canteen', polygon: square(0, 10) },
    { ...zone, id: '2', name: 'A closet with a very long name', polygon: square(10, 2) }
  ],
  receivers: [{ id: 'r-1', name: 'R1', position: { x: 5, y: 5 }, isOnline: true }]
}
const view = { scale: 10, x: 0, y: 0 }
const screen = { width: 200, height: 100 }

/** Pictures are told apart by how they were drawn. */
const sprites = spritesOf(lightPalette, (size, draw) => {
  const { pen, calls } = recordingPen()
  draw(pen)
  return `${size} ${calls.join(' ')} ${pen.fillStyle} ${pen.globalAlpha}`
})
const look = { sprites, selected: null, screen }

const marker = (id: string, x: number, more: Partial<Marker> = {}): Marker => ({
  id,
  name: `Person ${id}`,
  kind: 'person',
  isFaint: false,
  position: { x, y: 5 },
  ...more
})

t.test('drawing', async (t) => {
  t.test('writes the names that fit and how many are inside', async (t) => {
    const { pen, texts } = recordingPen()
    drawPlan(pen, plan, view, lightPalette, { counts: new Map([['1', 12]]), highlighted: null, isTraced: false })

    t.same(texts.filter(Boolean), ['12', 'Canteen'])
  })

  t.test('draws all walls as one line', async (t) => {
    const { pen, count } = recordingPen()
    drawPlan(pen, plan, view, lightPalette, { counts: new Map(), highlighted: '1', isTraced: false })

    t.equal(count('stroke'), 1)
  })

  t.test('leaves the walls to a plan that was uploaded', async (t) => {
    const { pen, count } = recordingPen()
    drawPlan(pen, plan, view, lightPalette, { counts: new Map(), highlighted: null, isTraced: true })

    t.equal(count('lineTo'), 6, 'the outlines of two zones')
    t.equal(pen.globalAlpha, 1)
  })

  t.test('copies a picture for each of three hundred markers, and draws nothing anew', async (t) => {
    const { pen, count, calls } = recordingPen()
    const markers = Array.from({ length: 300 }, (_, at) => marker(String(at), at % 20))
    drawMarkers(pen, markers, view, lightPalette, look)

    t.equal(count('drawImage'), 300)
    t.equal(calls.length, 300)
  })

  t.test('has a picture for every look', async (t) => {
    const { pen, pictures } = recordingPen()
    const looks = [{}, { isFaint: true }, { kind: 'thing' as const }, { kind: 'thing' as const, isFaint: true }]
    const markers = looks.map((more, at) => marker(String(at), at, more))
    drawMarkers(pen, markers, view, lightPalette, look)

    t.same(pictures.toSorted(), Object.values(sprites).toSorted())
    t.equal(new Set(pictures).size, 4)
  })

  t.test('leaves out what is not on the screen', async (t) => {
    const { pen, count } = recordingPen()
    drawMarkers(pen, [marker('a', 5), marker('b', 500)], view, lightPalette, look)

    t.equal(count('drawImage'), 1)
  })

  t.test('names the one that is selected, and nobody else', async (t) => {
    const { pen, texts } = recordingPen()
    drawMarkers(pen, [marker('a', 5), marker('b', 6, { kind: 'thing', isFaint: true })], view, lightPalette, {
      ...look,
      selected: 'a'
    })

    t.same(texts, ['Person a'])
  })

  t.test('leaves the pen opaque', async (t) => {
    const { pen } = recordingPen()
    drawMarkers(pen, [marker('a', 5, { isFaint: true })], view, lightPalette, look)
    t.equal(pen.globalAlpha, 1)
    drawAmbient(pen, [{ id: 'x', position: { x: 1, y: 1 }, strength: 0 }], view, lightPalette)
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

  t.test('are near the receiver that heard them, the nearer the stronger', async (t) => {
    const distance = (rssi: number): number => {
      const [mark] = ambientMarks([device('a', 'r-1', rssi)], plan.receivers)
      return mark ? Math.hypot(mark.position.x - 5, mark.position.y - 5) : Number.NaN
    }

    t.ok(distance(-50) < distance(-80))
    t.ok(distance(-150) < 6)
  })

  t.test('stay where they are', async (t) => {
    t.same(
      ambientMarks([device('a', 'r-1', -60)], plan.receivers),
      ambientMarks([device('a', 'r-1', -60)], plan.receivers)
    )
  })

  t.test('are left out when another floor heard them', async (t) => {
    t.same(ambientMarks([device('a', 'r-9', -60)], plan.receivers), [])
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

t.test('the colours of the plan', async (t) => {
  const palettes: readonly (readonly [string, Palette])[] = [
    ['light', lightPalette],
    ['dark', darkPalette]
  ]
  for (const [name, palette] of palettes) {
    for (const ground of ['ground', 'room', 'corridor', 'restricted', 'muster', 'highlight'] as const) {
      t.test(`can be read on ${ground} in the ${name} theme`, async (t) => {
        t.ok(contrast(palette.label, palette[ground]) >= 4.5, 'labels')
        t.ok(contrast(palette.count, palette[ground]) >= 4.5, 'counts')
        t.ok(contrast(palette.person, palette[ground]) >= 3, 'people')
        t.ok(contrast(palette.thing, palette[ground]) >= 3, 'things')
      })
    }
    t.test(`can be read on a name tag in the ${name} theme`, async (t) => {
      t.ok(contrast(palette.tagText, palette.tag) >= 4.5)
    })
  }
})
