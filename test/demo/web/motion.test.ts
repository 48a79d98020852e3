import t from 'tap'
import { Motion } from '../../../demo/web/floor-plan/motion.js'

const rounded = (point: { x: number; y: number } | undefined) =>
  point && { x: Math.round(point.x * 100) / 100, y: Math.round(point.y * 100) / 100 }

/** A copy, because the position object changes. */
const at = (motion: Motion, id: string, nowMs: number) => {
  motion.advance(nowMs)
  const position = motion.positionOf(id)
  return position && { ...position }
}

t.test('motion', async (t) => {
  t.test('a new marker is shown at its position immediately', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 3, y: 4 }, 0)

    t.same(at(motion, 'a', 0), { x: 3, y: 4 })
    t.same(at(motion, 'a', 10_000), { x: 3, y: 4 })
    t.equal(at(motion, 'b', 0), undefined)
  })

  t.test('a marker moves evenly to its new position and stops there', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 0, y: 0 }, 0)
    motion.moveTo('a', { x: 1.15, y: 2.3 }, 1000)

    t.same(rounded(at(motion, 'a', 1000)), { x: 0, y: 0 })
    t.same(rounded(at(motion, 'a', 1500)), { x: 0.5, y: 1 })
    t.same(rounded(at(motion, 'a', 2000)), { x: 1, y: 2 })
    t.same(rounded(at(motion, 'a', 60_000)), { x: 1.15, y: 2.3 })
  })

  t.test('an early update continues from the current position', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 0, y: 0 }, 0)
    motion.moveTo('a', { x: 1.15, y: 0 }, 1000)
    motion.moveTo('a', { x: 0.5, y: 5 }, 1500)

    t.same(rounded(at(motion, 'a', 1500)), { x: 0.5, y: 0 })
  })

  t.test('a marker jumps over a long distance', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 0, y: 0 }, 0)
    motion.moveTo('a', { x: 40, y: 0 }, 1000)

    t.same(at(motion, 'a', 1001), { x: 40, y: 0 })
  })

  t.test('a movement takes a few seconds at most', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 0, y: 0 }, 0)
    motion.moveTo('a', { x: 4, y: 0 }, 600_000)

    t.same(at(motion, 'a', 604_000), { x: 4, y: 0 })
  })

  t.test('frames and batches reuse the position object', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 0, y: 0 }, 0)
    const position = motion.positionOf('a')
    motion.moveTo('a', { x: 2.3, y: 0 }, 1000)
    motion.advance(1500)

    t.equal(motion.positionOf('a'), position)
    t.same(rounded(position), { x: 1, y: 0 })
  })

  t.test('clear removes all markers', async (t) => {
    const motion = new Motion()
    motion.moveTo('a', { x: 0, y: 0 }, 0)
    motion.clear()

    t.equal(motion.positionOf('a'), undefined)
  })
})
