import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { ReferenceCounts } from '../../../src/client/realtime/reference-counts.js'
import { checkProperty } from '../../helper/property.js'

const setUp = () => {
  const calls: string[] = []
  const counted = new ReferenceCounts(
    (name) => void calls.push(`begin ${name}`),
    (name) => void calls.push(`end ${name}`)
  )
  return { calls, counted }
}

t.test('what is wanted by several', async (t) => {
  t.test('begins with the first and ends with the last', async (t) => {
    const { calls, counted } = setUp()
    const [one, other] = [counted.acquire('a'), counted.acquire('a')]
    one()
    t.same(calls, ['begin a'])
    other()
    t.same(calls, ['begin a', 'end a'])
  })

  t.test('is not ended for others by one who lets go twice', async (t) => {
    const { calls, counted } = setUp()
    const release = counted.acquire('a')
    counted.acquire('a')
    release()
    release()

    t.same(calls, ['begin a'])
    t.same(counted.names, ['a'])
  })

  t.test('runs exactly while somebody wants it', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.array(fc.record({ name: fc.constantFrom('a', 'b'), release: fc.boolean() })), (steps) => {
        const running = new Set<string>()
        const counted = new ReferenceCounts(
          (name) => void running.add(name),
          (name) => void running.delete(name)
        )
        const wishes: { readonly name: string; readonly release: () => void }[] = []
        for (const { name, release } of steps) {
          const index = release ? wishes.findIndex((wish) => wish.name === name) : -1
          if (index >= 0) wishes.splice(index, 1)[0]?.release()
          else if (!release) wishes.push({ name, release: counted.acquire(name) })
          assert.deepEqual([...running].toSorted(), [...new Set(wishes.map((wish) => wish.name))].toSorted())
        }
      })
    )
  })
})
