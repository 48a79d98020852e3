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

t.test('reference counts', async (t) => {
  t.test('the first reference calls begin and the last release calls end', async (t) => {
    const { calls, counted } = setUp()
    const [one, other] = [counted.acquire('a'), counted.acquire('a')]
    one()
    t.same(calls, ['begin a'])
    other()
    t.same(calls, ['begin a', 'end a'])
  })

  t.test('releasing a reference twice counts once', async (t) => {
    const { calls, counted } = setUp()
    const release = counted.acquire('a')
    counted.acquire('a')
    release()
    release()

    t.same(calls, ['begin a'])
    t.same(counted.names, ['a'])
  })

  t.test('a name is active exactly while it has references', async (t) => {
    await checkProperty(
      t,
      fc.property(fc.array(fc.record({ name: fc.constantFrom('a', 'b'), release: fc.boolean() })), (steps) => {
        const running = new Set<string>()
        const counted = new ReferenceCounts(
          (name) => void running.add(name),
          (name) => void running.delete(name)
        )
        const subscriptions: { readonly name: string; readonly release: () => void }[] = []
        for (const { name, release } of steps) {
          const index = release ? subscriptions.findIndex((subscription) => subscription.name === name) : -1
          if (index >= 0) subscriptions.splice(index, 1)[0]?.release()
          else if (!release) subscriptions.push({ name, release: counted.acquire(name) })
          assert.deepEqual(
            [...running].toSorted(),
            [...new Set(subscriptions.map((subscription) => subscription.name))].toSorted()
          )
        }
      })
    )
  })
})
