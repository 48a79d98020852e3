import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { Movement, type Point } from '../../../src/client/buildings/movement.js'
import { checkProperty } from '../../helper/property.js'

const rounded = (point: Point | undefined) =>
  point && { x: Math.round(point.x * 100) / 100, y: Math.round(point.y * 100) / 100 }

/** A copy, because the position object changes. */
const at = (movement: Movement, id: string, nowMs: number) => {
  movement.advance(nowMs)
  const position = movement.positionOf(id)
  return position && { ...position }
}

t.test('movement', async (t) => {
  t.test('a new marker is shown at its position immediately', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 3, y: 4 }, 0)

    t.equal(movement.isMoving, false)
    t.same(at(movement, 'a', 0), { x: 3, y: 4 })
    t.same(at(movement, 'a', 10_000), { x: 3, y: 4 })
    t.equal(at(movement, 'b', 0), undefined)
  })

  t.test('a marker moves evenly to its new position and stops there', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    movement.moveTo('a', { x: 1.15, y: 2.3 }, 1000)

    t.same(rounded(at(movement, 'a', 1000)), { x: 0, y: 0 })
    t.same(rounded(at(movement, 'a', 1500)), { x: 0.5, y: 1 })
    t.same(rounded(at(movement, 'a', 2000)), { x: 1, y: 2 })
    t.equal(movement.isMoving, true)
    t.same(at(movement, 'a', 60_000), { x: 1.15, y: 2.3 })
    t.equal(movement.isMoving, false)
  })

  t.test('an early update continues from the current position', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    movement.moveTo('a', { x: 1.15, y: 0 }, 1000)
    movement.moveTo('a', { x: 0.5, y: 5 }, 1500)

    t.same(rounded(at(movement, 'a', 1500)), { x: 0.5, y: 0 })
  })

  t.test('a marker does not jump over a long distance', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    movement.moveTo('a', { x: 46, y: 0 }, 1000)

    t.same(rounded(at(movement, 'a', 1025)), { x: 1, y: 0 })
  })

  t.test('a movement after a gap takes four seconds', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    movement.moveTo('a', { x: 4, y: 0 }, 600_000)

    t.same(rounded(at(movement, 'a', 601_000)), { x: 1, y: 0 })
    t.same(at(movement, 'a', 604_000), { x: 4, y: 0 })
  })

  t.test('a marker does not jump when missed positions arrive all at once after a gap', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    // The first of them is the position at which the marker already is.
    for (const x of [0, 10, 20, 40]) movement.moveTo('a', { x, y: 0 }, 30_000)

    t.same(rounded(at(movement, 'a', 30_000)), { x: 0, y: 0 })
    t.same(rounded(at(movement, 'a', 31_000)), { x: 10, y: 0 })
    t.same(at(movement, 'a', 34_000), { x: 40, y: 0 })
  })

  t.test('a marker follows a fast publisher closely after a gap', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    for (let step = 1; step <= 200; step += 1) movement.moveTo('a', { x: step / 10, y: 0 }, 30_000 + step * 50)

    const { x = 0 } = at(movement, 'a', 40_000) ?? {}
    t.ok(x > 19.5, `${x}`)
  })

  t.test('frames and batches reuse the position object', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    const position = movement.positionOf('a')
    movement.moveTo('a', { x: 2.3, y: 0 }, 1000)
    movement.advance(1500)

    t.equal(movement.positionOf('a'), position)
    t.same(rounded(position), { x: 1, y: 0 })
  })

  t.test('an update at the same position starts no movement', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 1, y: 2 }, 0)
    movement.moveTo('a', { x: 1, y: 2 }, 1000)

    t.equal(movement.isMoving, false)
  })

  t.test('an advance to infinity shows every marker at its position', async (t) => {
    const movement = new Movement()
    movement.moveTo('a', { x: 0, y: 0 }, 0)
    movement.moveTo('a', { x: 5, y: 0 }, 1000)

    t.same(at(movement, 'a', Number.POSITIVE_INFINITY), { x: 5, y: 0 })
    t.equal(movement.isMoving, false)
  })

  t.test('a removed marker appears at its next position without moving there', async (t) => {
    const movement = new Movement()
    for (const id of ['a', 'b']) movement.moveTo(id, { x: 0, y: 0 }, 0)
    movement.moveTo('a', { x: 5, y: 0 }, 1000)
    movement.remove('a')
    movement.remove('a')
    t.equal(movement.positionOf('a'), undefined)
    t.equal(movement.isMoving, false)
    movement.moveTo('a', { x: 9, y: 0 }, 2000)
    t.same(at(movement, 'a', 2000), { x: 9, y: 0 })

    movement.clear()
    t.same([movement.positionOf('a'), movement.positionOf('b')], [undefined, undefined])
  })
})

interface Update {
  readonly atMs: number
  readonly x: number
}

/** Where the model draws a marker, from all its updates: one straight piece after the other. */
const modelAt = (updates: readonly Update[], nowMs: number): number => {
  let [from, to] = [updates[0]?.x ?? 0, updates[0]?.x ?? 0]
  let [startMs, endMs] = [0, 0]
  let dueMs = updates[0]?.atMs ?? 0
  const drawn = (atMs: number): number =>
    atMs >= endMs ? to : from + ((to - from) * (atMs - startMs)) / (endMs - startMs)
  for (const [index, { atMs, x }] of updates.entries()) {
    const before = updates[index - 1]
    if (before === undefined || atMs > nowMs) continue
    const sinceMs = atMs - before.atMs
    dueMs = sinceMs < 100 ? Math.max(dueMs, atMs + 100) : atMs + Math.min(sinceMs * 1.15, 4000)
    if (x !== to) [from, to, startMs, endMs] = [drawn(atMs), x, atMs, dueMs]
  }
  return drawn(nowMs)
}

const updatesOf = fc
  .array(
    fc.record({
      afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2000 }), fc.integer({ min: 0, max: 90_000 })),
      x: fc.integer({ min: 0, max: 60 })
    }),
    { minLength: 1, maxLength: 30 }
  )
  .map((steps) => {
    let atMs = 0
    return steps.map(({ afterMs, x }, index): Update => {
      // The marker exists before the first frame.
      if (index > 0) atMs += afterMs
      return { atMs, x }
    })
  })

/** Runs the updates with frames in between, and calls back for every frame. */
const play = (
  updates: readonly Update[],
  framesMs: readonly number[],
  onFrame: (x: number, nowMs: number) => void
): Movement => {
  const movement = new Movement()
  const steps = [
    ...updates.map(({ atMs, x }) => ({ atMs, run: () => movement.moveTo('a', { x, y: 0 }, atMs) })),
    ...framesMs.map((atMs) => ({
      atMs,
      run: () => {
        movement.advance(atMs)
        onFrame(movement.positionOf('a')?.x ?? 0, atMs)
      }
    }))
  ]
  for (const { run } of steps.sort((one, other) => one.atMs - other.atMs)) run()
  return movement
}

t.test('properties of movement', async (t) => {
  t.test('a marker is drawn at the same place at any frame rate', async (t) => {
    const framesOf = fc.array(fc.integer({ min: 0, max: 300_000 }), { maxLength: 40 })
    await checkProperty(
      t,
      fc.property(updatesOf, framesOf, (updates, framesMs) => {
        play(updates, framesMs, (x, nowMs) =>
          assert.ok(Math.abs(x - modelAt(updates, nowMs)) < 1e-6, `${x} at ${nowMs}, model ${modelAt(updates, nowMs)}`)
        )
      }),
      { numRuns: 1000 }
    )
  })

  t.test('a marker never moves further in a frame than its longest way allows in that time', async (t) => {
    await checkProperty(
      t,
      fc.property(updatesOf, fc.integer({ min: 4, max: 50 }), (updates, frameMs) => {
        const endMs = (updates.at(-1)?.atMs ?? 0) + 5000
        // Only around the updates: the marker moves at most four seconds after one.
        const framesMs = updates.flatMap(({ atMs }) =>
          Array.from({ length: 5 }, (_, index) => Math.min(atMs + index * frameMs, endMs))
        )
        let last: { readonly x: number; readonly nowMs: number } | null = null
        play(updates, framesMs, (x, nowMs) => {
          // 60 m in at least 100 ms.
          if (last) assert.ok(Math.abs(x - last.x) <= (60 / 100) * (nowMs - last.nowMs) + 1e-6)
          last = { x, nowMs }
        })
      })
    )
  })

  t.test('a marker ends exactly at its last position and then costs nothing', async (t) => {
    await checkProperty(
      t,
      fc.property(updatesOf, (updates) => {
        const { atMs = 0, x = 0 } = updates.at(-1) ?? {}
        const movement = play(updates, [], () => undefined)
        movement.advance(atMs + 4000)
        assert.equal(movement.positionOf('a')?.x, x)
        assert.equal(movement.isMoving, false)
      })
    )
  })
})
