import t from 'tap'
import { boxAround, cornersOf, nearest, zoneAt } from '../../web/floor-plan/plan.js'

t.test('hit testing', async (t) => {
  const items = [
    { id: 'near', position: { x: 1, y: 0 } },
    { id: 'nearer', position: { x: 0.5, y: 0 } },
    { id: 'far', position: { x: 9, y: 9 } }
  ]

  t.test('hit testing finds the nearest marker within reach', async (t) => {
    t.equal(nearest(items, { x: 0, y: 0 }, 2)?.id, 'nearer')
    t.equal(nearest(items, { x: 4, y: 0 }, 2), undefined)
    t.equal(nearest([], { x: 4, y: 0 }, 2), undefined)
  })
})

t.test('the bounding box of a zone contains all its corners', async (t) => {
  const corners = [
    { x: 3, y: 1 },
    { x: 7, y: 2 },
    { x: 5, y: 9 }
  ]
  t.same(boxAround(corners), { x: 3, y: 1, width: 4, height: 8 })
})

t.test('the corners of a zone are read in both forms', async (t) => {
  t.same(cornersOf([{ x: 1, y: 2 }, [3, 4]]), [
    { x: 1, y: 2 },
    { x: 3, y: 4 }
  ])
  t.same(cornersOf(null), [])
})

t.test('the zone at a place is the smallest one that contains it', async (t) => {
  const square = (id: string, size: number) => ({
    id,
    polygon: [
      [0, 0],
      [size, 0],
      [size, size],
      [0, size]
    ]
  })
  const zones = [square('hall', 10), square('desk', 2), { id: 'none', polygon: null }]
  t.equal(zoneAt(zones, { x: 1, y: 1 })?.id, 'desk')
  t.equal(zoneAt(zones, { x: 5, y: 5 })?.id, 'hall')
  t.equal(zoneAt(zones, { x: 50, y: 5 }), undefined)
})
