import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Check } from '../../../src/relay/admin/contract.js'
import { ADMIN_PASSWORD, type LiveReader, operator } from '../../helper/admin.js'
import { type Answer, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { send } from '../../helper/http.js'
import { connectedClient, openClient } from '../../helper/raw-client.js'
import { recordedLog } from '../../helper/recorded-log.js'
import { startRedis } from '../../helper/redis.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD, RELAY_ALLOWED_ORIGINS: 'https://app.example.com' }
const MINUTE_MS = 60_000
const BATCH = { type: 'position-batch', data: [] }

/** Waits until a check is in a state, and returns it. */
const until = async (live: LiveReader, id: string, state: string, sentence = /./): Promise<Check> => {
  const matches = (check: Check): boolean => check.id === id && check.state === state && sentence.test(check.sentence)
  // Checks are only sent when they change.
  const known = live.last.checks
  const checks = known?.some(matches) ? known : await live.next('checks', (all) => all.some(matches))
  return required(checks.find(matches))
}

const webSocketStatus = async (relay: EdgeRelay, origin: string): Promise<number> =>
  (
    await send(relay.url, '/connection/websocket', {
      headers: {
        connection: 'upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
        origin
      }
    })
  ).status

t.test('a relay without the built-in namespaces has no checks of their publications', async (t) => {
  const relay = await startRelay(t, { channel: { namespaces: [{ name: 'chat' }] } }, ON)
  const live = await (await operator(relay)).live(t)
  const checks = live.last.checks ?? (await live.next('checks'))
  t.match(
    checks.map(({ id }) => id),
    ['clients', 'origins']
  )
})

t.test("checks of the operators' page", async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const one = await operator(relay)
  const live = await one.live(t)

  t.test('checks are green or amber after start', async (t) => {
    const checks = live.last.checks ?? (await live.next('checks'))
    t.same(
      checks.map(({ id, state }) => `${id} ${state}`),
      [
        'floors amber',
        'global amber',
        'clients amber',
        'origins green',
        'upgrade green',
        'tokens green',
        'revoked green',
        'key green',
        'limits green',
        'silent green',
        'proxies green',
        'engine green'
      ]
    )
    for (const { sentence, title } of checks) t.match(`${title}: ${sentence}`, /^.+: [A-Za-z].+\.$/)
  })

  t.test('the floors check turns amber and red when publications stop', async (t) => {
    relay.advance(2 * MINUTE_MS)
    t.ok(await until(live, 'floors', 'red', /No positions have been published/))
    await relay.publish('floor:1', BATCH)
    t.ok(await until(live, 'floors', 'green'))
    relay.advance(2 * MINUTE_MS)
    t.ok(await until(live, 'floors', 'amber', /2 min ago/))
    relay.advance(4 * MINUTE_MS)
    t.ok(await until(live, 'floors', 'red', /6 min ago/))
    await relay.publish('floor:2', BATCH)
    t.ok(await until(live, 'floors', 'green'))
  })

  t.test('the global check depends on the last publication to global:all', async (t) => {
    await relay.publish('global:other', 1)
    t.ok(await until(live, 'global', 'amber', /yet/))
    await relay.publish('global:all', { type: 'ambient-batch', data: [] })
    t.ok(await until(live, 'global', 'green'))
    relay.advance(20 * MINUTE_MS)
    t.ok(await until(live, 'global', 'amber', /20 min ago/))
    await one.get('session')
    relay.advance(29 * MINUTE_MS)
    await one.get('session')
    relay.advance(20 * MINUTE_MS)
    t.ok(await until(live, 'global', 'red', /1 h ago/))
  })

  t.test('the origins check lists rejected origins', async (t) => {
    const red = until(live, 'origins', 'red', /evil\.example.*RELAY_ALLOWED_ORIGINS/)
    for (let count = 0; count < 3; count++) t.equal(await webSocketStatus(relay, 'https://evil.example'), 403)
    await send(relay.url, '/connection/sse', { headers: { origin: 'https://<b>.example' } })
    await red
    const { details } = await until(live, 'origins', 'red', /4 times/)
    t.same(details, [
      { label: 'https://evil.example', count: 3 },
      { label: 'https://<b>.example', count: 1 }
    ])
  })

  t.test('the details of a check are limited in number and length', async (t) => {
    for (let count = 0; count < 200; count++) {
      await send(relay.url, '/connection/sse', { headers: { origin: `https://${count}.example/${'x'.repeat(1000)}` } })
    }
    const { details } = await until(live, 'origins', 'red')
    t.ok(details.length <= 50)
    t.same(details[0], { label: 'https://evil.example', count: 3 }, 'a detail that repeats stays')
    t.ok(details.every(({ label }) => label.length <= 200))
  })

  // Valid by the relay's clock, which the test has moved.
  const LONG = { lifetimeSeconds: 36_000 }
  const TOKENS: readonly (readonly [rejection: string, token: string])[] = [
    ['bad-signature', `${relayToken({ sub: '42' }, LONG).slice(0, -4)}AAAA`],
    ['expired', relayToken({ sub: '42' }, { lifetimeSeconds: 1 })],
    ['missing', ''],
    ['no-user', relayToken({}, LONG)],
    ['malformed', '<script>'],
    ['bad-claims', relayToken({ sub: '42', channel: 'floor:1' }, LONG)]
  ]
  for (const [rejection, token] of TOKENS) {
    t.test(`the tokens check gives advice for: ${rejection}`, async (t) => {
      const red = live.next('checks', (checks) =>
        checks.some(
          ({ id, state, details }) =>
            id === 'tokens' && state === 'red' && details.some(({ label }) => label === rejection)
        )
      )
      const client = await openClient(t, relay.url)
      client.send({ id: 1, connect: { token } })
      t.match(
        (await red).find(({ id }) => id === 'tokens'),
        { state: 'red' }
      )
      client.ws.terminate()
    })
  }

  t.test('the key check is red until a publication with the right key', async (t) => {
    const red = until(live, 'key', 'red', /REALTIME_API_KEY/)
    t.equal((await relay.api('publish', {}, { headers: { 'x-api-key': 'wrong' } })).status, 401)
    t.same((await red).details, [{ label: '127.0.0.1', count: 1 }])
    relay.advance(1)
    await relay.publish('floor:1', BATCH)
    t.ok(await until(live, 'key', 'amber'))
  })

  t.test('the upgrade check detects requests without an upgrade', async (t) => {
    const red = until(live, 'upgrade', 'red', /Upgrade/)
    t.equal((await send(relay.url, '/connection/websocket')).status, 426)
    await red
  })

  t.test('checks for rejections are amber while clients are connected', async (t) => {
    const amber = Promise.all(['origins', 'upgrade'].map((id) => until(live, id, 'amber')))
    await webSocketStatus(relay, 'https://evil.example')
    await send(relay.url, '/connection/websocket')
    const client = await openClient(t, relay.url)
    await client.request({ id: 1, connect: { token: relayToken({ sub: '42' }, LONG) } })
    await amber
    t.ok(await until(live, 'clients', 'green'))
  })

  t.test('checks for rejections turn green after ten minutes', async (t) => {
    await one.get('session')
    relay.advance(11 * MINUTE_MS)
    t.ok(await Promise.all(['origins', 'tokens', 'key', 'upgrade'].map((id) => until(live, id, 'green'))))
  })
})

/** Without pings during the test, because the test moves the clock. */
const QUIET_FILE = {
  client: { ping_interval: '3600s' },
  channel: {
    namespaces: [
      { name: 'floor', allow_subscribe_for_client: true },
      { name: 'global', allow_subscribe_for_client: true }
    ]
  }
}

t.test('the silent check', async (t) => {
  const relay = await startRelay(t, QUIET_FILE, ON)
  const one = await operator(relay)
  const live = await one.live(t)
  const client = await openClient(t, relay.url)
  await client.request({ id: 1, connect: { token: relayToken({ sub: '42' }, { lifetimeSeconds: 36_000 }) } })
  for (const [index, channel] of ['floor:1', 'floor:2', 'global:all'].entries())
    await client.request({ id: index + 2, subscribe: { channel } })

  t.test('the silent check lists channels with subscribers and no publication for a minute', async (t) => {
    relay.advance(30_000)
    await relay.publish('floor:2', BATCH)
    relay.advance(40_000)
    const { details } = await until(live, 'silent', 'amber', /^1 channel has subscribers/)
    t.same(details, [{ label: 'floor:1', count: 1 }])
    relay.advance(MINUTE_MS)
    const { details: both } = await until(live, 'silent', 'amber', /^2 channels have subscribers/)
    t.same(both, [
      { label: 'floor:1', count: 2 },
      { label: 'floor:2', count: 1 }
    ])
  })

  t.test('the silent check turns green when every channel has received a publication', async (t) => {
    for (const channel of ['floor:1', 'floor:2']) await relay.publish(channel, BATCH)
    t.ok(await until(live, 'silent', 'green'))
  })

  t.test('the silent check ignores channels without subscribers', async (t) => {
    relay.advance(2 * MINUTE_MS)
    await until(live, 'silent', 'amber')
    client.ws.terminate()
    t.ok(await until(live, 'silent', 'green'))
  })
})

t.test('the engine check is red while Redis is stopped', async (t) => {
  const redis = await startRedis(t)
  const relay = await startRelay(t, undefined, { ...ON, RELAY_ENGINE: 'redis', REDIS_URL: redis.url })
  const live = await (await operator(relay)).live(t)
  t.ok(await until(live, 'engine', 'green', /Redis is connected/))
  await redis.kill()
  t.ok(await until(live, 'engine', 'red', /REDIS_URL/))
  await redis.restart()
  t.ok(await until(live, 'engine', 'green'))
})

t.test('the revoked check is red while a node cannot read the invalidated tokens, which is logged once', async (t) => {
  const redis = await startRedis(t)
  const raw = new Redis(redis.url)
  t.teardown(() => raw.disconnect())
  const position = 'gatehouse{:\u0000token-invalidations}position'
  await raw.set(position, 'of a wrong type')
  const { lines, log } = recordedLog()
  const file = { client: { user_tokens_invalidate: { enabled: true } } }
  const relay = await startRelay(t, file, { ...ON, RELAY_ENGINE: 'redis', REDIS_URL: redis.url }, { log })
  const live = await (await operator(relay)).live(t)
  t.ok(await until(live, 'revoked', 'red', /1 of 1 nodes cannot read the revoked tokens/))
  // Longer than until the next attempt.
  await setTimeout(1_500)
  await raw.del(position)
  t.ok(await until(live, 'revoked', 'green'))

  const logged = lines.filter(({ msg }) => String(msg).startsWith('token invalidations'))
  t.match(logged, [
    { msg: 'token invalidations not read', areTokensRejected: true, err: { message: /WRONGTYPE/ } },
    { msg: 'token invalidations read again' }
  ])
  t.equal(logged.length, 2)
})

t.test('the proxies check names a proxy whose backend fails, until it has answered for ten minutes', async (t) => {
  const backend = await startEventBackend(t)
  const relay = await startRelay(
    t,
    { rpc: { proxy: { endpoint: backend.endpoint('rpc') }, without_namespace: { proxy_enabled: true } } },
    ON
  )
  const live = await (await operator(relay)).live(t)
  const client = await connectedClient(t, relay.url)
  const call = (): Promise<unknown> => client.request({ id: 2, rpc: { method: 'x' } })
  const FAULTS: readonly (readonly [answer: Answer, sentence: RegExp])[] = [
    [new RawAnswer(500), /^The proxy rpc\.proxy fails \(status 500\): look into the log of the backend\.$/],
    [new RawAnswer(302), /\(status 302\): the endpoint redirects/],
    [new RawAnswer(403), /\(status 403\): the backend rejects/],
    [new RawAnswer(404), /\(status 404\): the backend does not have the path/],
    [new RawAnswer(200, 'x'), /\(the response must be a JSON object\): the backend sends a response of another form/],
    [RESET, /\((?:UND_ERR_SOCKET|ECONNRESET)\): check that the backend runs/]
  ]
  for (const [answer, sentence] of FAULTS) {
    backend.on('rpc', answer)
    await call()
    const { details } = await until(live, 'proxies', 'red', sentence)
    t.match(details, [{ label: 'rpc.proxy', count: Number }])
  }
  backend.on('rpc', {})
  await call()
  t.ok(await until(live, 'proxies', 'amber', /failed in the last ten minutes/))
  relay.advance(11 * MINUTE_MS)
  t.ok(await until(live, 'proxies', 'green', /^The backends of all event proxies answer\.$/))
})
