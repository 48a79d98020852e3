import t from 'tap'
import { grantedView, isInView, viewToAsk, WHOLE } from '../../../src/client/realtime/view.js'

const screen = { x: 10, y: 10, w: 4, h: 2 }
const asked = { x: 8, y: 9, w: 8, h: 4 }

t.test('the first view is asked for with a margin', async (t) => {
  t.same(viewToAsk(screen, WHOLE), asked)
})

t.test('a screen inside the granted view needs no new one', async (t) => {
  t.equal(viewToAsk({ ...screen, x: 11 }, { asked, granted: asked }), undefined)
})

t.test('a screen that leaves the granted view asks again', async (t) => {
  t.same(viewToAsk({ ...screen, x: 13 }, { asked, granted: asked }), { x: 11, y: 9, w: 8, h: 4 })
})

t.test('a much smaller screen asks for a smaller view', async (t) => {
  const small = { x: 11, y: 10, w: 1, h: 0.5 }
  t.same(viewToAsk(small, { asked, granted: asked }), { x: 10.5, y: 9.75, w: 2, h: 1 })
})

t.test('a view that was too large is not asked for again while the screen moves', async (t) => {
  t.equal(viewToAsk({ ...screen, x: 500 }, { asked, granted: null }), undefined)
})

t.test('the whole plane is asked for once', async (t) => {
  t.equal(viewToAsk(null, { asked, granted: asked }), null)
  t.equal(viewToAsk(null, WHOLE), undefined)
})

t.test('a view is read from the data of a reply only if it is complete', async (t) => {
  t.same(grantedView({ view: asked, max_rate: 1 }), asked)
  for (const data of [undefined, null, 7, {}, { view: null }, { view: { x: 1, y: 1, w: '1', h: 1 } }])
    t.equal(grantedView(data), null)
})

t.test('a view contains its left and upper edge only', async (t) => {
  t.ok(isInView({ x: 8, y: 9 }, asked))
  t.notOk(isInView({ x: 16, y: 9 }, asked))
  t.notOk(isInView({ x: 8, y: 13 }, asked))
})
