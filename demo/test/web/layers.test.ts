import t from 'tap'
import {
  ambientLayer,
  imageLayer,
  receiversLayer,
  wallsLayer,
  zoneLabelsLayer,
  zonesLayer
} from '../../web/floor-plan/ground.js'
import { LAYER_IDS, type Layer, layerChoiceOf } from '../../web/floor-plan/layer.js'
import { linkedPlaceIn, linkedPlaceLayer } from '../../web/floor-plan/linked-place.js'
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

t.test('zones', async (t) => {
  t.test('zones are tinted by kind, with corners in both forms', async (t) => {
    const calls = drawn(zonesLayer(zones, false))
    t.same(
      calls('fill').map(({ fill }) => fill),
      ['--sunken', '--danger-soft', '--good-soft', '--sunken']
    )
    t.same(calls('lineTo')[8]?.args, [16, 216], 'the first corner of the third zone')
  })

  t.test('zones and walls are transparent above an uploaded plan', async (t) => {
    t.equal(drawn(zonesLayer(zones, true))('fill')[0]?.alpha, 0.4)
    t.equal(drawn(wallsLayer([[0, 0, 40, 0]], true))('stroke')[0]?.alpha, 0.4)
  })

  t.test('an uploaded plan covers the floor', async (t) => {
    t.same(drawn(imageLayer(floor, 'picture'))('drawImage')[0]?.args, ['picture', 16, 16, 800, 400])
  })

  t.test('walls end where they do on the floor', async (t) => {
    const calls = drawn(wallsLayer([[0, 5, 40, 5]], false))
    t.same(
      [calls('moveTo')[0]?.args, calls('lineTo')[0]?.args],
      [
        [16, 116],
        [816, 116]
      ]
    )
  })
})

t.test('labels', async (t) => {
  const textsOf = (view = whole, people: ReadonlyMap<string, number> = new Map()): readonly unknown[] =>
    drawn(zoneLabelsLayer(zones, people), view)('fillText').map(({ args }) => args[0])

  t.test('the name of a zone is in its corner, after the number of people', async (t) => {
    const calls = drawn(zoneLabelsLayer(zones.slice(0, 1), new Map([['1', 7]])))
    t.same(
      calls('fillText').map(({ args }) => args),
      [
        ['7 ', 24, 21],
        ['Library', 38, 22]
      ]
    )
  })

  t.test('a name that does not fit into its zone is not shown', async (t) => {
    const small = { scale: 3, x: 0, y: 0 }
    t.same(textsOf(small), ['Library', 'Assembly'], 'the second zone is too narrow')
    t.same(textsOf({ scale: 1, x: 0, y: 0 }), [])
  })

  t.test('the number of people is shown also where the name does not fit', async (t) => {
    t.same(textsOf({ scale: 3, x: 0, y: 0 }, new Map([['2', 5]])), ['Library', '5 ', 'Assembly'])
  })

  t.test('the name stays in the visible part of a zone', async (t) => {
    const view = centreOn(100, { x: 10, y: 5 }, { floor, panel })
    const [label] = drawn(zoneLabelsLayer(zones, new Map()), view)('fillText')
    t.same(label?.args, ['Library', 8, 6])
  })

  t.test('names of markers must not cover the corner of a zone with its label', async (t) => {
    const rects = zoneLabelsLayer(zones, new Map()).covered?.(whole, panel) ?? []
    t.equal(rects.length, 3, 'the fourth zone has no area')
    t.match(rects[0], { x: 16, y: 16, height: 20 })
    t.ok((rects[0]?.width ?? 0) > 8 + 6 * 'Library'.length)
    t.same(zoneLabelsLayer(zones, new Map()).covered?.({ scale: 1, x: 0, y: 0 }, panel), [], 'where there is no label')
  })

  t.test('a zone outside the panel has no name', async (t) => {
    const view = centreOn(100, { x: 10, y: 5 }, { floor, panel })
    t.notOk(textsOf(view).includes('Server Room'))
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

  t.test('every ambient device is drawn', async (t) => {
    const devices = [1, 2, 3].map((x) => ({ id: String(x), position: { x, y: 1 } }))
    t.equal(drawn(ambientLayer(devices))('moveTo').length, 3)
  })
})

t.test('the choice of layers', async (t) => {
  t.test('the choice of layers is restored', async (t) => {
    const choice = { ...layerChoiceOf(null), receivers: false }
    t.same(layerChoiceOf(JSON.stringify(choice)), choice)
  })

  for (const stored of [null, '', '{', 'null', '[]', '7', '{"receivers":"no"}', '{"unknown":true}']) {
    t.test(`a stored choice of ${stored} yields the default`, async (t) => {
      t.same(Object.keys(layerChoiceOf(stored)), LAYER_IDS)
      t.equal(layerChoiceOf(stored).receivers, true)
    })
  }
})

t.test('the place of a link', async (t) => {
  const receivers = [
    { id: 'r-1', name: 'Library 1', status: 'offline', position: { x: 10, y: 5 } },
    { id: 'r-2', name: null, status: null, position: null }
  ]
  const placeOf = (query: { zone?: unknown; receiver?: unknown }) => linkedPlaceIn({ zones, receivers }, query)

  t.test('the place of a link is a zone, a receiver, or none on this floor', async (t) => {
    t.equal(placeOf({ zone: '2' })?.title, 'Zone Server Room')
    t.equal(placeOf({ receiver: 'r-1' })?.title, 'Receiver Library 1 (offline)')
    t.equal(placeOf({ receiver: 'r-2' })?.title, 'Receiver r-2 (unknown)')
    for (const query of [{}, { zone: '9' }, { zone: ['2'] }, { receiver: 'r-9' }]) t.equal(placeOf(query), null)
  })

  t.test('a linked zone is outlined, a linked receiver has a circle', async (t) => {
    const zone = placeOf({ zone: '2' })
    const receiver = placeOf({ receiver: 'r-1' })
    const nowhere = placeOf({ receiver: 'r-2' })
    if (!zone || !receiver || !nowhere) throw new Error('a place is missing')
    const calls = drawn(linkedPlaceLayer(zone))
    t.same([calls('moveTo')[0]?.args, calls('lineTo').length], [[416, 16], 3])
    t.equal(calls('stroke')[0]?.stroke, '--accent')
    t.same(drawn(linkedPlaceLayer(receiver))('arc')[0]?.args.slice(0, 2), [216, 116])
    t.same(drawn(linkedPlaceLayer(nowhere))('stroke'), [])
  })
})
