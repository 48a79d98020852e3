import { t } from 'tap'
import { eventually } from './eventually.js'

t.test('eventually resolves with the first truthy value', async (t) => {
  let calls = 0
  t.equal(await eventually(() => (++calls < 3 ? 0 : calls)), 3)
})

t.test('eventually retries a condition that throws', async (t) => {
  let calls = 0
  const value = await eventually(async () => {
    if (++calls < 3) throw new Error('not yet')
    return 'done'
  })
  t.equal(value, 'done')
})

t.test('eventually names the label and the last value after its deadline', async (t) => {
  await t.rejects(
    eventually(() => 0, { label: 'two clients', deadlineMs: 50 }),
    {
      message: 'gave up after 50 ms waiting for: two clients (last value: 0)'
    }
  )
})

t.test('eventually reports the source of the condition if it has no label', async (t) => {
  const list: number[] = []
  await t.rejects(
    eventually(() => list.length === 2, { deadlineMs: 50 }),
    { message: /list\.length ?=== ?2/ }
  )
})

t.test('eventually has the last error as its cause', async (t) => {
  const cause = new Error('connection refused')
  const condition = (): never => {
    throw cause
  }
  await t.rejects(eventually(condition, { label: 'a connection', deadlineMs: 50 }), {
    message: /a connection \(last error: connection refused\)/,
    cause
  })
})

t.test('eventually gives up on a condition that never settles', async (t) => {
  await t.rejects(
    eventually(() => new Promise<boolean>(() => undefined), { label: 'a reply', deadlineMs: 50 }),
    {
      message: /a reply \(the condition did not return\)/
    }
  )
})
