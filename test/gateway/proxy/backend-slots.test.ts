import t from 'tap'
import { Client } from 'undici'
import type { GatewayError } from '../../../src/gateway/errors.js'
import { BackendSlots, type Waiter } from '../../../src/gateway/proxy/backend.js'

class Somebody implements Waiter {
  readonly streams: boolean
  readonly anonymous: boolean
  readonly told: string[] = []

  constructor({ streams = false, anonymous = false } = {}) {
    this.streams = streams
    this.anonymous = anonymous
  }

  connection: Client | null = null

  run(connection: Client): void {
    this.told.push('run')
    this.connection = connection
  }

  reject({ code }: GatewayError): void {
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
  new BackendSlots({ connections, inFlight, anonymousPercent: 25, waitMs: FOREVER_MS }, open)

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
    const slots = new BackendSlots({ connections: 1, inFlight: 100, anonymousPercent: 25, waitMs: 1 }, open)
    const first = new Somebody()
    slots.enter(first)
    const code = await new Promise((resolve) => {
      slots.enter({
        streams: false,
        anonymous: false,
        run: () => resolve('run'),
        reject: (refusal) => resolve(refusal.code)
      })
    })

    t.equal(code, 'BACKEND_TIMEOUT')
    t.equal(slots.inFlight, 1)
    await leave(slots, first)
    t.equal(slots.inFlight, 0)
  })

  t.test('go to anonymous requests up to a quarter, and to others beyond it', async (t) => {
    const slots = slotsOf(8)
    const anonymous = [1, 2, 3].map(() => new Somebody({ anonymous: true }))
    for (const one of anonymous) slots.enter(one)
    t.same(
      anonymous.map(({ told }) => told),
      [['run'], ['run'], []],
      'the third waits although six are free'
    )
    const verified = [1, 2, 3, 4, 5, 6].map(() => new Somebody())
    for (const one of verified) slots.enter(one)
    t.ok(verified.every(({ told }) => told[0] === 'run'))

    await leave(slots, verified[0] as Somebody)
    t.same(anonymous[2]?.told, [], 'what others give back is not for it')
    await leave(slots, anonymous[0] as Somebody)
    t.same(anonymous[2]?.told, ['run'])
    t.equal(slots.inFlight, 7)
  })

  t.test('go to anonymous streams up to a quarter of what streams may have', async (t) => {
    const slots = slotsOf(16)
    const anonymous = [1, 2, 3].map(() => new Somebody({ anonymous: true, streams: true }))
    for (const one of anonymous) slots.enter(one)
    const verified = [1, 2, 3, 4, 5, 6, 7].map(() => new Somebody({ streams: true }))
    for (const one of verified) slots.enter(one)

    t.same(
      [...anonymous, ...verified].map(({ told }) => told.length),
      [1, 1, 0, 1, 1, 1, 1, 1, 1, 0]
    )
    await leave(slots, verified[0] as Somebody)
    t.same(anonymous[2]?.told, [])
    t.same(verified[6]?.told, ['run'])
    slots.giveUp(anonymous[2] as Somebody)
  })

  t.test('are refused to more anonymous requests than a quarter of those that may be in flight', async (t) => {
    const slots = slotsOf(4, 8)
    const anonymous = [1, 2, 3].map(() => new Somebody({ anonymous: true }))
    for (const one of anonymous) slots.enter(one)
    t.same(
      anonymous.map(({ told }) => told),
      [['run'], [], ['OVERLOADED']]
    )
    slots.giveUp(anonymous[1] as Somebody)
    slots.giveUp(anonymous[1] as Somebody)
    t.equal(slots.inFlight, 1, 'giving up twice counts once')
    const verified = [1, 2, 3, 4, 5, 6, 7].map(() => new Somebody())
    for (const one of verified) slots.enter(one)
    t.ok(verified.every(({ told }) => told[0] !== 'OVERLOADED'))
    for (const one of verified) if (one.connection === null) slots.giveUp(one)
  })

  t.test('that are left for others are OVERLOADED for an anonymous request that waited in vain', async (t) => {
    const slots = new BackendSlots({ connections: 4, inFlight: 100, anonymousPercent: 25, waitMs: 1 }, open)
    slots.enter(new Somebody({ anonymous: true }))
    const code = await new Promise((resolve) => {
      slots.enter({ streams: false, anonymous: true, run: () => resolve('run'), reject: ({ code }) => resolve(code) })
    })

    t.equal(code, 'OVERLOADED')
    t.equal(slots.inFlight, 1)
  })
})
