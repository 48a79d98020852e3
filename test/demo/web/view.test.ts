import t from 'tap'
import { boxAround, nearest } from '../../../demo/web/floor-plan/plan.js'
import { centredOn, fitted, moved, toPlan, toScreen, zoomed } from '../../../demo/web/floor-plan/view.js'

const screen = { width: 800, height: 600 }

t.test('the view of a plan', async (t) => {
  t.test('fits all of it, in the middle', async (t) => {
    const view = fitted({ width: 60, height: 20 }, screen, 10)

    t.same(toScreen(view, { x: 0, y: 10 }), { x: 10, y: 300 })
    t.same(toScreen(view, { x: 60, y: 10 }), { x: 790, y: 300 })
  })

  t.test('has a scale even where the screen is smaller than the padding', async (t) => {
    t.ok(fitted({ width: 60, height: 20 }, { width: 5, height: 5 }, 10).scale > 0)
  })

  t.test('leads from the plan to the screen and back', async (t) => {
    const view = { scale: 13, x: 40, y: -70 }

    t.same(toPlan(view, toScreen(view, { x: 5, y: 7 })), { x: 5, y: 7 })
  })

  t.test('zooms around the place that is pointed at', async (t) => {
    const view = fitted({ width: 60, height: 20 }, screen, 10)
    const anchor = { x: 200, y: 310 }
    const before = toPlan(view, anchor)
    const after = toPlan(zoomed(view, anchor, 1.5), anchor)

    t.ok(Math.hypot(before.x - after.x, before.y - after.y) < 1e-9)
  })

  t.test('zooms neither out of sight nor without end', async (t) => {
    const view = { scale: 10, x: 0, y: 0 }

    t.equal(zoomed(view, { x: 0, y: 0 }, 1e6).scale, 120)
    t.equal(zoomed(view, { x: 0, y: 0 }, 1e-6).scale, 2)
  })

  t.test('moves, and centres on a place', async (t) => {
    const view = { scale: 10, x: 1, y: 2 }

    t.same(moved(view, { x: 5, y: -5 }), { scale: 10, x: 6, y: -3 })
    t.same(toScreen(centredOn(view, { x: 8, y: 9 }, screen), { x: 8, y: 9 }), { x: 400, y: 300 })
  })
})

t.test('hit testing', async (t) => {
  const items = [
    { id: 'near', position: { x: 1, y: 0 } },
    { id: 'nearer', position: { x: 0.5, y: 0 } },
    { id: 'far', position: { x: 9, y: 9 } }
  ]

  t.test('finds the nearest marker within reach', async (t) => {
    t.equal(nearest(items, { x: 0, y: 0 }, 2)?.id, 'nearer')
    t.equal(nearest(items, { x: 4, y: 0 }, 2), undefined)
    t.equal(nearest([], { x: 4, y: 0 }, 2), undefined)
  })
})

t.test('the box around a zone', async (t) => {
  const corners = [
    { x: 3, y: 1 },
    { x: 7, y: 2 },
    { x: 5, y: 9 }
  ]
  t.same(boxAround(corners), { x: 3, y: 1, width: 4, height: 8 })
})
