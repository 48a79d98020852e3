import t from 'tap'
import { ambientMarks } from '../../web/floor-plan/ambient.js'
import { buildingLayer, furnitureOf } from '../../web/floor-plan/building.js'
import { ambientLayer, receiversLayer, zoneLabelsLayer, zonesLayer } from '../../web/floor-plan/ground.js'
import type { Layer } from '../../web/floor-plan/layer.js'
import { linkedPlaceIn, linkedPlaceLayer } from '../../web/floor-plan/linked-place.js'
import { trailLayer } from '../../web/floor-plan/trail-layer.js'
import { centreOn, fit } from '../../web/floor-plan/viewport.js'
import { recordingPen } from './recording-pen.js'

const floor = { width: 40, height: 20 }
const panel = { width: 832, height: 432 }
const whole = fit({ floor, panel })

/** Draws a layer at 20 pixels per metre, with a margin of 16 pixels. Colours are the names of their tokens. */
const drawn = (layer: Layer, view = whole) => {
  const { pen, calls } = recordingPen()
  layer.draw({ pen, view, panel, colour: (token) => token })
  t.equal(pen.globalAlpha, 1, 'a layer restores the opacity')
  return calls
}

const rectangle = (x: number, y: number, width: number, height: number) => [
  { x, y },
  { x: x + width, y },
  { x: x + width, y: y + height },
  { x, y: y + height }
]
const zones = [
  { id: '1', name: 'Library', polygon: rectangle(0, 0, 20, 10) },
  { id: '2', name: 'Server Room', polygon: rectangle(20, 0, 20, 10), isRestricted: true },
  {
    id: '3',
    name: 'Assembly',
    polygon: [
      [0, 10],
      [40, 10],
      [40, 20]
    ],
    isMusterPoint: true
  },
  { id: '4', name: 'Unmeasured', polygon: null }
]

t.test('zones are tinted by kind, with corners in both forms, and less above an uploaded plan', async (t) => {
  const calls = drawn(zonesLayer(zones, false))
  t.same(
    calls('fill').map(({ fill }) => fill),
    ['--sunken', '--danger-soft', '--good-soft', '--sunken']
  )
  t.same(calls('lineTo')[8]?.args, [16, 216], 'the first corner of the third zone')
  t.equal(drawn(zonesLayer(zones, true))('fill')[0]?.alpha, 0.4)
})

t.test('the building', async (t) => {
  const rooms = [
    { id: '1', name: 'Office', type: 'office', polygon: rectangle(0, 0, 20, 10) },
    { id: '2', name: 'Corridor', type: 'corridor', polygon: rectangle(0, 10, 20, 3) },
    { id: '3', name: 'Stairs', type: 'stairs', polygon: rectangle(0, 13, 6, 7) }
  ]
  const door = { x: 10, y: 10, width: 1, way: 'y', between: ['1', '2'] } as const

  t.test('walls end where they do on the floor, and a door opens into the room', async (t) => {
    const calls = drawn(buildingLayer({ walls: [[0, 10, 9.5, 10]], doors: [door], zones: [] }))
    const lines = calls('lineTo').map(({ args }) => args.map((value) => Math.round(Number(value))))
    t.same(lines, [
      [206, 196],
      [206, 216]
    ])
    t.same(calls('arc')[0]?.args, [206, 216, 20, -Math.PI / 2, 0, false])
    const corridor = { ...door, between: ['2', '3'] } as const
    const south = drawn(buildingLayer({ walls: [], doors: [corridor], zones: rooms }))('lineTo').at(-1)
    t.equal(Math.round(Number(south?.args[1])), 236, 'away from the corridor')
  })

  t.test('rooms have furniture by their type, inside of their walls', async (t) => {
    for (const type of ['office', 'laboratory', 'common', 'meeting', 'restricted']) {
      const room = { x: 5, y: 5, width: 12, height: 9 }
      const pieces = furnitureOf(type, room)
      t.ok(pieces.length > 0, type)
      for (const { x, y, width, height } of pieces)
        t.ok(x > 5.9 && y > 5.9 && x + width < 16.1 && y + height < 13.1, `${type} at ${x}, ${y}`)
    }
    for (const type of ['corridor', 'stairs', 'muster', null])
      t.same(furnitureOf(type, { x: 0, y: 0, width: 9, height: 9 }), [])
    t.same(furnitureOf('office', { x: 0, y: 0, width: 2, height: 2 }), [], 'a small room')
  })

  t.test('stairs have treads', async (t) =>
    t.ok(drawn(buildingLayer({ walls: [], doors: [], zones: rooms }))('lineTo').length >= 5)
  )
})

t.test('labels', async (t) => {
  const textsOf = (view = whole, people: ReadonlyMap<string, number> = new Map()): readonly unknown[] =>
    drawn(zoneLabelsLayer(zones, people), view)('fillText').map(({ args }) => args[0])

  t.test('the name of a zone is in its corner, after the number of people', async (t) => {
    const calls = drawn(zoneLabelsLayer(zones.slice(0, 1), new Map([['1', 7]])))
    t.same(calls('fillText')[0]?.args, ['7 Library', 24, 21])
  })

  t.test('a name that does not fit is not shown, but the number of people is', async (t) => {
    const small = { scale: 3, x: 0, y: 0 }
    t.same(textsOf(small), ['Library', 'Assembly'])
    t.same(textsOf(small, new Map([['2', 5]])), ['Library', '5', 'Assembly'])
    t.same(textsOf({ scale: 1, x: 0, y: 0 }), [])
  })

  t.test('the number of people of a zone that is not completely received is not shown', async (t) => {
    const layer = zoneLabelsLayer(zones.slice(0, 1), new Map([['1', 7]]), { x: 0, y: 0, w: 15, h: 15 })
    t.equal(drawn(layer)('fillText')[0]?.args[0], 'Library')
  })

  t.test('the name stays in the visible part of a zone, and names of markers do not cover it', async (t) => {
    const view = centreOn(100, { x: 10, y: 5 }, { floor, panel })
    t.same(drawn(zoneLabelsLayer(zones, new Map()), view)('fillText')[0]?.args, ['Library', 8, 5])
    t.notOk(textsOf(view).includes('Server Room'))
    const rects = zoneLabelsLayer(zones, new Map()).covered?.(whole, panel) ?? []
    t.equal(rects.length, 3, 'the fourth zone has no area')
    t.match(rects[0], { x: 16, y: 16, height: 20 })
    t.ok((rects[0]?.width ?? 0) > 8 + 6 * 'Library'.length)
  })
})

t.test('receivers and ambient devices', async (t) => {
  t.test('a receiver that is not online is red, and one without a position is not drawn', async (t) => {
    const receivers = [
      { position: { x: 1, y: 1 }, status: 'online' },
      { position: { x: 2, y: 1 }, status: 'offline' },
      { status: 'online' }
    ]
    t.same(
      drawn(receiversLayer(receivers))('fillRect').map(({ fill }) => fill),
      ['--control-line', '--danger']
    )
  })

  t.test('ambient devices keep a place around their receiver, closer with a stronger signal', async (t) => {
    const device = { deviceType: 'phone', manufacturer: null, receiverId: 'r-1', timestamp: 0 }
    const marksOf = (deviceId: string, rssi: number, receiverId = 'r-1') =>
      ambientMarks(
        [{ ...device, deviceId, rssi, receiverId }],
        [{ id: 'r-1', position: { x: 5, y: 5 } }, { id: 'r-2' }]
      )
    const distanceOf = (rssi: number): number => {
      const [mark] = marksOf('a', rssi)
      return mark ? Math.hypot(mark.position.x - 5, mark.position.y - 5) : Number.NaN
    }
    t.ok(distanceOf(-50) < distanceOf(-80) && distanceOf(-150) < 6)
    t.same(marksOf('a', -60), marksOf('a', -60))
    t.notSame(marksOf('a', -60)[0]?.position, marksOf('b', -60)[0]?.position)
    t.same(marksOf('a', -60, 'r-2'), [], 'a receiver without a position')
    t.equal(drawn(ambientLayer([...marksOf('a', -60), ...marksOf('b', -60)]))('moveTo').length, 2)
  })
})

t.test('the place of a link', async (t) => {
  const receivers = [
    { id: 'r-1', name: 'Library 1', status: 'offline', position: { x: 10, y: 5 } },
    { id: 'r-2', name: null, status: null, position: null }
  ]
  const placeOf = (query: { zone?: string; receiver?: string }) =>
    linkedPlaceIn({ zones, receivers }, { zone: null, receiver: null, ...query })

  t.test('the place of a link is a zone, a receiver, or none on this floor', async (t) => {
    t.equal(placeOf({ zone: '2' })?.title, 'Zone Server Room')
    t.equal(placeOf({ receiver: 'r-1' })?.title, 'Receiver Library 1 (offline)')
    t.equal(placeOf({ receiver: 'r-2' })?.title, 'Receiver r-2 (unknown)')
    for (const query of [{}, { zone: '9' }, { receiver: 'r-9' }]) t.equal(placeOf(query), null)
  })

  t.test('a linked zone is outlined, a linked receiver has a circle', async (t) => {
    const marksOf = (query: { zone?: string; receiver?: string }) =>
      drawn(linkedPlaceLayer(placeOf(query) ?? { title: '', corners: [] }))
    t.same([marksOf({ zone: '2' })('moveTo')[0]?.args, marksOf({ zone: '2' })('lineTo').length], [[416, 16], 3])
    t.same(marksOf({ receiver: 'r-1' })('arc')[0]?.args.slice(0, 2), [216, 116])
    t.same(marksOf({ receiver: 'r-2' })('stroke'), [])
  })
})

t.test('a trail fades towards its start', async (t) => {
  const [a, b, c] = [
    { x: 0, y: 0 },
    { x: 1, y: 0 },
    { x: 9, y: 0 }
  ]
  const calls = drawn(
    trailLayer([
      { from: a, to: b, age: 1 },
      { from: b, to: c, age: 0 }
    ])
  )
  t.same(
    calls('stroke').map(({ alpha }) => Number(alpha.toFixed(2))),
    [0.15, 1]
  )
  t.same(calls('lineTo')[1]?.args, [196, 16])
})
