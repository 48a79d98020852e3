import t, { type Test } from 'tap'
import { SIGNATURE_HEADER, signatureError } from '../../../src/shared/webhook-signature.js'
import { type Answer, HANG, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient, type RawClient } from '../../helper/raw-client.js'
import { recordedLog } from '../../helper/recorded-log.js'
import { startRelay } from '../../helper/relay.js'
import { configOf } from '../../helper/relay-rules.js'
import { eventsOf } from '../../helper/webhook-events.js'

const SECRET = 'the secret of webhooks, at least 32 bytes'
const PREVIOUS_SECRET = 'the earlier secret of webhooks, 32 bytes'
/** The tests advance the clock by this. */
const DELAY_MS = 60_000

const backend = await startEventBackend(t)
const { lines, log } = recordedLog()

const namespace = (name: string, options: object = {}) => ({
  name,
  presence: true,
  allow_subscribe_for_client: true,
  state_proxy_enabled: true,
  ...options
})

const FILE = {
  client: { ping_interval: '100h' },
  channel: {
    proxy: {
      state: {
        endpoint: `${backend.endpoint('state')}?of=rooms`,
        timeout: '30s',
        http: {
          static_headers: { 'X-Relay': 'one' },
          status_to_code_transforms: [{ status_code: 403, to_disconnect: { code: 4503 } }],
          signing_secret: SECRET,
          signing_secret_previous: PREVIOUS_SECRET
        }
      }
    },
    namespaces: [
      namespace('room'),
      namespace('entered', { state_events: ['occupied'] }),
      namespace('left', { state_events: ['vacated'] }),
      namespace('other', { state_proxy_name: 'other' }),
      namespace('plain', { state_proxy_enabled: false })
    ]
  },
  proxies: [{ name: 'other', endpoint: backend.endpoint('other'), timeout: '30s' }],
  engine: { redis: { channel_state: { vacated_event_delay: `${DELAY_MS}ms` } } }
}

const edge = await startRelay(t, FILE, {}, { log })

let lastId = 1
const subscribe = async (client: RawClient, channel: string): Promise<void> => {
  const id = ++lastId
  client.send({ id, subscribe: { channel } })
  t.match(await client.next(), { id, subscribe: {} })
}

const subscriber = async (t: Test, ...channels: readonly string[]): Promise<RawClient> => {
  const client = await connectedClient(t, edge.url)
  for (const channel of channels) await subscribe(client, channel)
  return client
}

const leave = async (client: RawClient): Promise<void> => {
  client.ws.close()
  await client.closed
}

/** The events about a channel that the backend has received, repeated ones once. */
const told = (channel: string, event = 'state'): readonly string[] => [
  ...new Map(
    eventsOf(backend, event)
      .filter((each) => each.channel === channel)
      .map(({ id, type }) => [id, type])
  ).values()
]

const until = (channel: string, types: readonly string[], event = 'state'): Promise<unknown> =>
  eventually(() => JSON.stringify(told(channel, event)) === JSON.stringify(types), {
    label: `${channel} ${types.join(', ')}`
  })

t.test('a backend is notified when a channel becomes occupied and when it is vacated', async (t) => {
  const before = Date.now()
  const first = await subscriber(t, 'room:1')
  const second = await subscriber(t, 'room:1')
  await until('room:1', ['occupied'])
  const [request] = backend.of('state')
  t.match(request, {
    method: 'POST',
    path: '/state?of=rooms',
    headers: { 'content-type': 'application/json', 'x-relay': 'one' },
    body: { events: [{ channel: 'room:1', type: 'occupied', time_ms: Number, id: /^[-\w]{20,}$/ }] }
  })
  t.same(Object.keys(request?.body ?? {}), ['events'])
  const [event] = eventsOf(backend)
  t.ok(Number(event?.time_ms) >= before && Number(event?.time_ms) <= Date.now())
  await leave(first)
  await leave(second)
  await eventually(() => isEmpty('room:1'))
  edge.advance(DELAY_MS)

  await until('room:1', ['occupied', 'vacated'])
})

/** Whether the relay has removed all subscribers of a channel. */
const isEmpty = async (channel: string): Promise<boolean> => {
  const stats = await edge.relay.presenceStats(channel)
  return 'clients' in stats && stats.clients === 0
}

t.test('a page that reloads within the delay causes no event', async (t) => {
  const page = await subscriber(t, 'room:reloaded', 'room:closed')
  await until('room:closed', ['occupied'])
  await leave(page)
  await eventually(() => isEmpty('room:reloaded'))
  await subscriber(t, 'room:reloaded')
  edge.advance(DELAY_MS)
  await until('room:closed', ['occupied', 'vacated'])

  t.same(told('room:reloaded'), ['occupied'])
})

t.test('a request has a signature for each secret', async (t) => {
  await subscriber(t, 'room:signed')
  await until('room:signed', ['occupied'])
  const request = backend.of('state').at(-1)
  const header = String(request?.headers[SIGNATURE_HEADER.toLowerCase()])
  const check = (secret: string) => signatureError(header, request?.text ?? '', [secret], Date.now())

  t.equal(check(SECRET), null)
  t.equal(check(PREVIOUS_SECRET), null)
  t.equal(check('another secret of webhooks, at least 32 bytes'), 'mismatch')
})

t.test('a namespace selects events and proxy', async (t) => {
  const client = await subscriber(t, 'entered:1', 'left:1', 'other:1', 'plain:1')
  await until('entered:1', ['occupied'])
  await until('other:1', ['occupied'], 'other')
  await leave(client)
  await eventually(() => isEmpty('left:1'))
  edge.advance(DELAY_MS)
  await until('left:1', ['vacated'])
  await until('other:1', ['occupied', 'vacated'], 'other')
  await subscriber(t, 'entered:1', 'room:after')
  await until('entered:1', ['occupied', 'occupied'])

  t.same(told('plain:1'), [])
  t.same(told('other:1'), [])
  t.notOk(SIGNATURE_HEADER.toLowerCase() in (backend.of('other')[0]?.headers ?? {}), 'unsigned without a secret')
})

t.test('server-side subscriptions count', async (t) => {
  const client = await connectedClient(t, edge.url, 'subscribed by the server')
  await edge.api('subscribe', { user: 'subscribed by the server', channel: 'room:server-side' })
  await until('room:server-side', ['occupied'])
  client.ws.terminate()
})

const FAULTS: readonly (readonly [name: string, answer: Answer])[] = [
  ['status 500', new RawAnswer(500, '{}')],
  ['status 204', new RawAnswer(204)],
  ['a status that a transform turns into a disconnect', new RawAnswer(403, '{}')],
  ['a redirect', new RawAnswer(302, '', { location: '/elsewhere' })],
  ['an empty body', new RawAnswer(200, '')],
  ['HTML', new RawAnswer(200, '<html>')],
  ['a list', new RawAnswer(200, '[]')],
  ['an error', { error: { code: 500, message: 'no' } }],
  ['a closed connection', RESET]
]

for (const [index, [name, answer]] of FAULTS.entries()) {
  t.test(`events are sent again, with the same ids, after ${name}`, async (t) => {
    const channel = `room:fault${index}`
    let failures = 0
    backend.on('state', () => (++failures <= 2 ? answer : { result: {} }))
    const client = await subscriber(t, channel)
    await eventually(() => eventsOf(backend).filter((each) => each.channel === channel).length === 3)
    await leave(client)
    await eventually(() => isEmpty(channel))
    edge.advance(DELAY_MS)
    await until(channel, ['occupied', 'vacated'])
    const bodies = backend.of('state').filter(({ text }) => text.includes(`"${channel}"`))

    t.equal(new Set(bodies.slice(0, 3).map(({ text }) => text)).size, 1)
    t.ok(lines.some((line) => line.event === 'state' && line.proxy === 'default' && line.msg === 'event proxy failed'))
  })
}

t.test('while the backend hangs, clients subscribe and other proxies are served', async (t) => {
  const held = backend.hold('state')
  await subscriber(t, 'room:hanging')
  await held.next()
  await subscriber(t, 'room:meanwhile', 'other:meanwhile')
  await until('other:meanwhile', ['occupied'], 'other')
  t.same(told('room:meanwhile'), [])
  held.release({ result: {} })
  backend.handlers.delete('state')
  await until('room:meanwhile', ['occupied'])
})

t.test('a change that is undone while the backend fails is not sent', async (t) => {
  const held = backend.hold('state')
  await subscriber(t, 'room:first')
  await held.next()
  const client = await subscriber(t, 'room:undone')
  await leave(client)
  await eventually(() => isEmpty('room:undone'))
  held.release({ result: {} })
  backend.handlers.delete('state')
  await subscriber(t, 'room:last')
  await until('room:last', ['occupied'])

  t.same(told('room:undone'), [])
})

t.test('a request has at most 100 events', async (t) => {
  const held = backend.hold('state')
  const client = await subscriber(t, 'room:before')
  await held.next()
  const channels = Array.from({ length: 120 }, (_, n) => `room:many${n}`)
  for (const channel of channels) await subscribe(client, channel)
  const earlier = backend.of('state').length
  held.release({ result: {} })
  backend.handlers.delete('state')
  for (const channel of channels) await until(channel, ['occupied'])
  const sizes = backend
    .of('state')
    .slice(earlier)
    .map(({ body }) => (Array.isArray(body.events) ? body.events.length : 0))

  t.same(sizes, [100, 20])
})

t.test('requests are counted in the metrics', async (t) => {
  const { body } = await send(edge.url, '/metrics')
  t.match(body, /^centrifugo_proxy_duration_seconds_histogram_count\{[^}]*type="state",name="default"[^}]*\} [1-9]/m)
  t.match(body, /^centrifugo_proxy_errors\{[^}]*type="state",name="default"[^}]*\} [1-9]/m)
  t.match(body, /^centrifugo_proxy_inflight_requests\{[^}]*type="state",name="default"[^}]*\} 0/m)
})

t.test('a reload applies to channels that are occupied', async (t) => {
  const { proxy } = FILE.channel
  const state = { ...proxy.state, endpoint: backend.endpoint('moved') }
  const moved = { ...FILE, channel: { ...FILE.channel, proxy: { state } } }
  const client = await subscriber(t, 'room:kept', 'plain:kept')
  await until('room:kept', ['occupied'])
  const namespaces = FILE.channel.namespaces.map((each) =>
    each.name === 'plain' ? { ...each, state_proxy_enabled: true } : each
  )
  edge.running.configure(configOf({ ...moved, channel: { ...moved.channel, namespaces } }))
  await until('plain:kept', ['occupied'], 'moved')
  await leave(client)
  await eventually(() => isEmpty('room:kept'))
  edge.advance(DELAY_MS)
  await until('room:kept', ['vacated'], 'moved')
  edge.running.configure(configOf(FILE))
})

t.test('a relay that stops waits for the request that is under way', async (t) => {
  const { running, url } = await startRelay(t, FILE)
  const held = backend.hold('state')
  const client = await connectedClient(t, url)
  client.send({ id: 2, subscribe: { channel: 'room:stopping' } })
  const request = await held.next()
  const closed = running.close()
  running.closeConnections()
  await client.closed
  held.release({ result: {} })
  await closed

  t.notOk(request.isAborted)
})

t.test('a backend that never answers is asked again', async (t) => {
  backend.on('hasty', HANG)
  const { proxy } = FILE.channel
  const state = { ...proxy.state, endpoint: backend.endpoint('hasty'), timeout: '50ms' }
  const { url } = await startRelay(t, { ...FILE, channel: { ...FILE.channel, proxy: { state } } })
  const client = await connectedClient(t, url)
  client.send({ id: 2, subscribe: { channel: 'room:unanswered' } })
  await eventually(() => backend.of('hasty').length >= 3)
  backend.on('hasty', { result: {} })

  t.equal(new Set(backend.of('hasty').map(({ text }) => text)).size, 1)
})
