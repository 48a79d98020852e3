import fc from 'fast-check'
import t from 'tap'
import { checkProperty } from '../../../test/helper/property.js'
import {
  type Bounds,
  centreOn,
  fit,
  inBounds,
  panBy,
  pinch,
  proportionOf,
  toFloor,
  toPanel,
  type View,
  zoomAbout,
  zoomLimits
} from '../../web/floor-plan/viewport.js'

const bounds: Bounds = { floor: { width: 60, height: 25 }, panel: { width: 1000, height: 600 } }
const MARGIN = 16

const isNear = (one: number, other: number): boolean => Math.abs(one - other) < 1e-6

/** A view at four times the scale of the whole floor, around the middle of the floor. */
const zoomed = (): View => centreOn(fit(bounds).scale * 4, { x: 30, y: 12.5 }, bounds)

t.test('fitting', async (t) => {
  for (const [name, panel] of [
    ['a wide panel', { width: 2000, height: 400 }],
    ['a tall panel', { width: 360, height: 700 }],
    ['a large screen', { width: 2560, height: 1300 }]
  ] as const) {
    t.test(`the whole floor is visible and centred in ${name}, with a margin`, async (t) => {
      const view = fit({ floor: bounds.floor, panel })
      const start = toPanel(view, { x: 0, y: 0 })
      const end = toPanel(view, { x: 60, y: 25 })

      t.ok(isNear(start.x, panel.width - end.x) && isNear(start.y, panel.height - end.y), 'centred')
      t.ok(isNear(Math.min(start.x, start.y), MARGIN), 'as large as possible')
    })
  }

  t.test('a panel has the proportions of its floor, within limits', async (t) => {
    t.equal(proportionOf({ width: 60, height: 25 }), 25 / 60)
    t.same(
      [
        { width: 100, height: 1 },
        { width: 1, height: 100 },
        { width: 0, height: 0 }
      ].map(proportionOf),
      [0.2, 2, 0.5]
    )
  })

  t.test('a panel without a size yields a finite view', async (t) => {
    t.ok(Object.values(fit({ floor: bounds.floor, panel: { width: 0, height: 0 } })).every(Number.isFinite))
  })
})

t.test('zooming', async (t) => {
  t.test('zooming keeps the place under the pointer', async (t) => {
    const view = zoomed()
    const pixel = { x: 420, y: 310 }
    const next = zoomAbout(view, pixel, 1.3, bounds)

    t.ok(isNear(next.scale, view.scale * 1.3))
    t.ok(isNear(toFloor(next, pixel).x, toFloor(view, pixel).x))
    t.ok(isNear(toFloor(next, pixel).y, toFloor(view, pixel).y))
  })

  t.test('zooming ends at the limits', async (t) => {
    const { min, max } = zoomLimits(bounds)
    t.equal(zoomAbout(zoomed(), { x: 1, y: 1 }, 1e9, bounds).scale, max)
    t.same(zoomAbout(zoomed(), { x: 1, y: 1 }, 1e-9, bounds), fit(bounds))
    t.equal(fit(bounds).scale, min)
  })

  t.test('two fingers move and scale the plan, so that the places under them stay under them', async (t) => {
    const view = zoomed()
    const from = [
      { x: 400, y: 300 },
      { x: 600, y: 300 }
    ] as const
    const to = [
      { x: 370, y: 280 },
      { x: 630, y: 280 }
    ] as const
    const next = pinch(view, from, to, bounds)

    for (const finger of [0, 1] as const) {
      const place = toFloor(view, from[finger])
      t.ok(isNear(toPanel(next, place).x, to[finger].x) && isNear(toPanel(next, place).y, to[finger].y))
    }
  })

  t.test('two fingers at the same pixel yield a finite view', async (t) => {
    const at = { x: 5, y: 5 }
    t.ok(Object.values(pinch(zoomed(), [at, at], [at, { x: 9, y: 9 }], bounds)).every(Number.isFinite))
  })
})

t.test('panning', async (t) => {
  t.test('panning moves the plan with the pointer', async (t) => {
    const view = zoomed()
    t.same(panBy(view, { x: 30, y: -20 }, bounds), { scale: view.scale, x: view.x + 30, y: view.y - 20 })
  })

  t.test('panning ends at the edges of the floor', async (t) => {
    t.same(toPanel(panBy(zoomed(), { x: 1e6, y: 1e6 }, bounds), { x: 0, y: 0 }), { x: MARGIN, y: MARGIN })
    const end = toPanel(panBy(zoomed(), { x: -1e6, y: -1e6 }, bounds), { x: 60, y: 25 })
    t.ok(isNear(end.x, 1000 - MARGIN) && isNear(end.y, 600 - MARGIN))
  })

  t.test('a floor that is shown completely does not move', async (t) => {
    t.same(panBy(fit(bounds), { x: 50, y: 50 }, bounds), fit(bounds))
  })
})

t.test('every view leaves no empty space beside a floor that is larger than the panel', async (t) => {
  const number = fc.double({ min: -1e5, max: 1e5, noNaN: true })
  const scale = fc.double({ min: 0.01, max: 1e4, noNaN: true })
  await checkProperty(
    t,
    fc.property(fc.record({ scale, x: number, y: number }), (view) => {
      const allowed = inBounds(view, bounds)
      const { min, max } = zoomLimits(bounds)
      if (allowed.scale < min || allowed.scale > max) throw new Error('beyond the zoom limits')
      for (const [offset, metres, pixels] of [
        [allowed.x, 60, 1000],
        [allowed.y, 25, 600]
      ] as const) {
        const length = metres * allowed.scale
        const isWhole = length <= pixels - 2 * MARGIN + 1e-6
        if (isWhole && !isNear(offset, (pixels - length) / 2)) throw new Error('not centred')
        if (!isWhole && (offset > MARGIN + 1e-6 || offset + length < pixels - MARGIN - 1e-6)) throw new Error('a gap')
      }
    })
  )
})
