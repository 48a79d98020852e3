import { Agent } from 'node:http'
import t from 'tap'
import { type Message, send } from '../../helper/http.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'

/** As in src/relay/transport/emulation-limit.ts. */
const LIMIT = 1000
const INTERVAL_MS = 10_000

t.test('requests to /emulation of one address', async (t) => {
  // A fixed clock, so that the limit does not depend on the speed of the machine.
  const clock = { monotonicMs: 5000 }
  const { url, relay } = await startRelay(t, {}, { TRUST_PROXY: 'loopback' }, { monotonicMs: () => clock.monotonicMs })
  const agent = new Agent({ keepAlive: true, maxSockets: 10 })
  t.teardown(() => agent.destroy())
  const connect = JSON.stringify({ id: 1, connect: { token: relayToken({ sub: '42' }) } })
  const stream = await fetch(`${url}/connection/http_stream`, { method: 'POST', body: connect })
  const reader = required(stream.body).getReader()
  t.teardown(() => reader.cancel())
  const { value } = await reader.read()
  const { session, node } = JSON.parse(Buffer.from(required(value)).toString()).connect

  const emulate = async (session: string, node: string, address: string): Promise<number> => {
    const body = JSON.stringify({ session, node, data: '{"id":2,"rpc":{}}' })
    const message: Message = { method: 'POST', body, headers: { 'x-forwarded-for': address }, agent }
    return (await send(url, '/emulation', message)).status
  }
  const statuses = async (count: number, ...request: Parameters<typeof emulate>): Promise<Map<number, number>> => {
    const counts = new Map<number, number>()
    for (const status of await Promise.all(Array.from({ length: count }, () => emulate(...request))))
      counts.set(status, (counts.get(status) ?? 0) + 1)
    return counts
  }

  t.test('requests of a client with a session are not limited', async (t) => {
    t.same(await statuses(LIMIT + 50, session, node, '10.0.0.1'), new Map([[204, LIMIT + 50]]))
  })

  t.test(
    'unsuccessful requests over the limit are rejected with 429, and those of other addresses are not',
    async (t) => {
      t.same(
        await statuses(LIMIT + 50, 'invented', relay.node, '10.0.0.2'),
        new Map([
          [404, LIMIT],
          [429, 50]
        ])
      )
      t.equal(await emulate('invented', 'unknown node', '10.0.0.2'), 429)
      t.equal(await emulate('invented', relay.node, '10.0.0.3'), 404)
      t.equal(await emulate(session, node, '10.0.0.3'), 204)
    }
  )

  t.test('requests are accepted again after some time', async (t) => {
    clock.monotonicMs += INTERVAL_MS / LIMIT
    t.equal(await emulate('invented', relay.node, '10.0.0.2'), 404)
    t.equal(await emulate('invented', relay.node, '10.0.0.2'), 429)
    clock.monotonicMs += INTERVAL_MS
    t.equal(await emulate(session, node, '10.0.0.2'), 204)
  })
})
