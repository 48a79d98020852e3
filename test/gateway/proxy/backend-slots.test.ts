import t from 'tap'
import { Client } from 'undici'
import type { Refusal } from '../../../src/gateway/errors.js'
import { BackendSlots, type Waiter } from '../../../src/gateway/proxy/backend-slots.js'

class Somebody implements Waiter {
  readonly streams: boolean
  readonly told: string[] = []

  constructor({ streams = false } = {}) {
    this.streams = streams
  }

  connection: Client | null = null

  run(connection: Client): void {
    this.told.push('run')
    this.connection = connection
  }

  refuse({ code }: Refusal): void {
    this.told.push(code)
  }
}

const FOREVER_MS = 600_000
// Connects to nothing: it is never used.
const open = (): Client => new Client('http://127.0.0.1:1')
/** Settles when those who waited for it have been served. */
const leave = (slots: BackendSlots, one: Somebody): Promise<void> => {
  slots.leave(one, one.connection as Client)
  return new Promise(setImmediate)
}
const slotsOf = (connections: number, inFlight = 100): BackendSlots =>
  new BackendSlots({ connections, inFlight, waitMs: FOREVER_MS }, open)

t.test('slots of the backend', async (t) => {
  t.test('go to whoever comes while there are any', async (t) => {
    const slots = slotsOf(2)
    const [first, second] = [new Somebody(), new Somebody()]
    slots.enter(first)
    slots.enter(second)

    t.same([first.told, second.told], [['run'], ['run']])
    t.equal(slots.inFlight, 2)
  })

  t.test('go to the one who has waited longest when one becomes free', async (t) => {
    const slots = slotsOf(1)
    const [first, second, third] = [new Somebody(), new Somebody(), new Somebody()]
    for (const one of [first, second, third]) slots.enter(one)
    t.same(second.told, [], 'waits')

    await leave(slots, first)
    t.same([second.told, third.told], [['run'], []])
    await leave(slots, second)
    t.same(third.told, ['run'])
    await leave(slots, third)
    t.equal(slots.inFlight, 0)
  })

  t.test('are not handed over while the one who leaves is still busy with leaving', async (t) => {
    const slots = slotsOf(1)
    const [first, second, third] = [new Somebody(), new Somebody(), new Somebody()]
    slots.enter(first)
    slots.enter(second)

    const left = leave(slots, first)
    t.same(second.told, [], 'not yet')
    slots.enter(third)
    t.same(third.told, [], 'nobody comes in between')
    await left
    t.same([second.told, third.told], [['run'], []])
    slots.giveUp(third)
  })

  t.test('do not go to one who gives up between the leaving of another and its turn', async (t) => {
    const slots = slotsOf(1)
    const [first, second, third] = [new Somebody(), new Somebody(), new Somebody()]
    for (const one of [first, second, third]) slots.enter(one)

    const left = leave(slots, first)
    slots.giveUp(second)
    await left
    t.same([second.told, third.told], [[], ['run']])
    t.equal(slots.inFlight, 1)
  })

  t.test('do not go to one who gave up', async (t) => {
    const slots = slotsOf(1)
    const [first, second, third] = [new Somebody(), new Somebody(), new Somebody()]
    for (const one of [first, second, third]) slots.enter(one)

    slots.giveUp(second)
    t.equal(slots.inFlight, 2, 'who gave up is not counted')
    await leave(slots, first)
    t.same([second.told, third.told], [[], ['run']])
    await leave(slots, third)
  })

  t.test('are refused to one more than may be in flight, who leaves nothing behind', async (t) => {
    const slots = slotsOf(1, 2)
    const [first, second, third] = [new Somebody(), new Somebody(), new Somebody()]
    slots.enter(first)
    slots.enter(second)

    slots.enter(third)
    t.same(third.told, ['OVERLOADED'])
    t.equal(slots.inFlight, 2)
    slots.giveUp(second)
    await leave(slots, first)
  })

  t.test('are never all held by streams', async (t) => {
    const slots = slotsOf(4)
    const streams = [1, 2, 3].map(() => new Somebody({ streams: true }))
    const [first, , third] = streams as [Somebody, Somebody, Somebody]
    for (const one of streams) slots.enter(one)
    t.same(third.told, [], 'the third waits although two are free')

    const whole = [new Somebody(), new Somebody()]
    for (const one of whole) slots.enter(one)
    t.same(
      whole.map(({ told }) => told),
      [['run'], ['run']],
      'others pass it'
    )
    await leave(slots, whole[0] as Somebody)
    t.same(third.told, [], 'what others give back is not for it')
    await leave(slots, first)
    t.same(third.told, ['run'])
  })

  t.test('are used again, the last one first', async (t) => {
    const slots = slotsOf(3)
    const [first, second, third] = [new Somebody(), new Somebody(), new Somebody()]
    slots.enter(first)
    slots.enter(second)
    t.not(first.connection, second.connection)
    await leave(slots, first)
    await leave(slots, second)
    slots.enter(third)

    t.equal(third.connection, second.connection)
  })

  t.test('hold one stream where there is only one connection', async (t) => {
    const slots = slotsOf(1)
    const stream = new Somebody({ streams: true })
    slots.enter(stream)
    t.same(stream.told, ['run'])
  })

  t.test('are waited for until the deadline, and no longer', async (t) => {
    const slots = new BackendSlots({ connections: 1, inFlight: 100, waitMs: 1 }, open)
    const first = new Somebody()
    slots.enter(first)
    const code = await new Promise((resolve) => {
      slots.enter({ streams: false, run: () => resolve('run'), refuse: (refusal) => resolve(refusal.code) })
    })

    t.equal(code, 'BACKEND_TIMEOUT')
    t.equal(slots.inFlight, 1)
    await leave(slots, first)
    t.equal(slots.inFlight, 0)
  })
})
