import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import t from 'tap'
import { defineChannels, typeOnly } from '../../../src/client/realtime/channels.js'
import { eventually } from '../../helper/eventually.js'
import { nextOf, openRealtime, subscribed } from '../../helper/realtime.js'
import { startRelay } from '../../helper/relay.js'

const Order = Type.Object({ total: Type.Number() })

/** A schema as Zod, Valibot and ArkType have it. */
const standard = (validate: (value: unknown) => unknown) => ({ '~standard': { validate } })

const issuesOf = (...messages: string[]) => ({ issues: messages.map((message) => ({ message })) })

t.test('declared channels', async (t) => {
  t.test('channels without checks accept everything', async (t) => {
    t.equal(defineChannels({ 'orders:*': Order }).checkOf('orders:42'), null)
    t.equal(defineChannels({ 'orders:*': Order }, { check: false }).checkOf('orders:42'), null)
  })

  t.test('a pattern matches whole names, and every other character is literal', async (t) => {
    const { checkOf } = defineChannels({ 'a.b:*': Order, 'shops:*:tasks': Order }, { check: Value.Check })
    for (const name of ['a.b:', 'a.b:1', 'a.b:1:2', 'shops:1:tasks', 'shops::tasks']) t.ok(checkOf(name), name)
    for (const name of ['axb:1', 'xa.b:1', 'shops:1:tasks2', 'shops:tasks']) t.equal(checkOf(name), null, name)
  })

  t.test('data must match one of the patterns, and a type without a schema permits everything', async (t) => {
    const schemas = { 'orders:*': Order, 'orders:all': Type.Array(Order), 'types:*': typeOnly<number>() }
    const { checkOf } = defineChannels({ ...schemas, 'orders:free*': typeOnly<unknown>() }, { check: Value.Check })
    const check = checkOf('orders:all')
    t.equal(check?.({ total: 1 }), null)
    t.equal(check?.([{ total: 1 }]), null)
    t.equal(check?.('text'), 'not a value of orders:*; not a value of orders:all')
    t.equal(checkOf('types:1'), null)
    t.equal(checkOf('orders:free'), null)
  })

  t.test('schemas that validate themselves need no function', async (t) => {
    const { checkOf } = defineChannels(
      {
        'numbers:*': standard((value) => (typeof value === 'number' ? { value } : issuesOf('not a number', 'wrong'))),
        'late:*': standard(async (value) => ({ value }))
      },
      { check: true }
    )
    t.equal(checkOf('numbers:1')?.(7), null)
    t.equal(checkOf('numbers:1')?.('7'), 'not a number, wrong')
    t.equal(checkOf('late:1')?.(7), 'its schema is asynchronous')
    t.throws(
      () => defineChannels({ 'orders:*': Order }, { check: true }),
      /orders:\* cannot validate itself.*Value\.Check/
    )
  })

  t.test('a wrong publication is an error and is not delivered, and the subscription continues', async (t) => {
    const relay = await startRelay(t, {
      channel: {
        namespaces: [
          {
            name: 'orders',
            allow_subscribe_for_client: true,
            history_size: 10,
            history_ttl: '60s',
            force_recovery: true,
            force_positioning: true
          }
        ]
      }
    })
    const channels = defineChannels({ 'orders:*': Order }, { check: Value.Check })
    const orders = openRealtime(t, relay, { channels }).subscribe('orders:42')
    await subscribed(orders)
    const totals: unknown[] = []
    orders.on('publication', ({ data }) => totals.push(data))
    const error = nextOf(orders, 'error')
    await relay.publish('orders:42', { total: '7' })
    t.match(await error, {
      name: 'RelayError',
      code: 91,
      message: 'publication on orders:42 does not match its schema: not a value of orders:*'
    })
    t.equal(orders.latest, null)
    t.match(orders.position, { offset: 1 })
    await relay.publish('orders:42', { total: 7 })
    await eventually(() => totals.length === 1)
    t.same(totals, [{ total: 7 }])
    t.equal(orders.error, null)
  })
})
