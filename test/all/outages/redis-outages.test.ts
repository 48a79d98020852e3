import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Child } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { send } from '../../helper/http.js'
import { startProgram } from '../../helper/program.js'
import { startRedis } from '../../helper/redis.js'
import { officialClient } from '../../helper/relay.js'
import { API_KEY, HMAC_SECRET } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'
import { type AcknowledgedPublication, checkSequences, SequenceSubscriber } from '../../helper/sequence-check.js'

const CLIENTS = 60
const CHANNELS = 10
const PUBLISHERS = 4
/** Between the publications of one publisher. */
const PAUSE_MS = 20
const OUTAGE_MS = 2_000

const CONFIG = {
  client: { recovery_max_publication_limit: 2_000 },
  channel: {
    namespaces: [
      {
        name: 'seq',
        allow_subscribe_for_client: true,
        history_size: 2_000,
        history_ttl: '300s',
        force_recovery: true
      }
    ]
  }
}

/** A response of the publish API with a position: of `publish` and `history`. */
interface PositionResponse {
  readonly result?: { readonly epoch: string; readonly offset: number }
  readonly error?: { readonly code: number }
}

t.test(`${CLIENTS} clients receive every publication once while relays and Redis fail`, async (t) => {
  const redis = await startRedis(t)
  const file = JSON.stringify(CONFIG)
  const config = `${t.testdir({ 'relay.json': file })}/relay.json`
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const startRelay = async (t: Test, port: number): Promise<Child> => {
    const program = await startProgram(t, 'dist/src/relay/main.js', {
      RELAY_PORT: String(port),
      RELAY_ENGINE: 'redis',
      REDIS_URL: redis.url,
      RELAY_CONFIG: config,
      REALTIME_HMAC_SECRET: HMAC_SECRET,
      REALTIME_API_KEY: API_KEY
    })
    await program.waitForLine('listening at')
    return program
  }
  const relays = await Promise.all(ports.map((port) => startRelay(t, port)))
  const api = async (port: number, method: string, request: unknown): Promise<PositionResponse> => {
    const { body } = await send(`http://127.0.0.1:${port}`, `/api/${method}`, {
      method: 'POST',
      body: JSON.stringify(request),
      headers: { 'x-api-key': API_KEY }
    })
    return JSON.parse(body)
  }

  const subscribers = Array.from({ length: CLIENTS }, (_, index) => {
    const subscriber = new SequenceSubscriber(`seq:${index % CHANNELS}`)
    const port = required(ports[Math.floor(index / CHANNELS) % ports.length])
    const delays = { minReconnectDelay: 50, maxReconnectDelay: 500, timeout: 30_000 }
    const client = officialClient(t, { port }, 'websocket', delays)
    const subscription = client.newSubscription(subscriber.channel, {
      minResubscribeDelay: 50,
      maxResubscribeDelay: 500
    })
    subscription.on('subscribed', (context) => subscriber.subscribed(context))
    subscription.on('publication', (context) => subscriber.publication(context))
    subscription.subscribe()
    client.connect()
    return subscriber
  })
  await eventually(() => subscribers.every(({ sessions }) => sessions.length > 0))

  const acknowledged: AcknowledgedPublication[] = []
  const codes = new Set<number>()
  const errors = { rejected: 0, unreachable: 0 }
  /** Retries until a relay accepts the publication. The idempotency key prevents a second publication. */
  const publish = async (n: number): Promise<void> => {
    const channel = `seq:${n % CHANNELS}`
    for (let attempt = 0; ; attempt++) {
      try {
        const port = required(ports[(n + attempt) % ports.length])
        const { result, error } = await api(port, 'publish', { channel, data: { n }, idempotency_key: String(n) })
        if (error === undefined) {
          acknowledged.push({ channel, n, ...required(result) })
          return
        }
        codes.add(error.code)
        errors.rejected++
      } catch {
        errors.unreachable++
      }
      await setTimeout(50)
    }
  }
  let next = 0
  let isPublishing = true
  const publishers = Promise.all(
    Array.from({ length: PUBLISHERS }, async () => {
      while (isPublishing) {
        await publish(next++)
        await setTimeout(PAUSE_MS)
      }
    })
  )
  const morePublished = (count: number): Promise<unknown> => {
    const until = acknowledged.length + count
    return eventually(() => acknowledged.length >= until, { label: `${count} more publications` })
  }

  await morePublished(100)
  relays[1]?.signal('SIGKILL')
  await relays[1]?.exited
  await morePublished(50)
  relays[1] = await startRelay(t, ports[1])
  await morePublished(50)

  redis.pause()
  await setTimeout(OUTAGE_MS)
  // About as long as the timeout of a Redis command.
  for (const port of ports) await eventually(async () => (await health(port)) === 503)
  redis.resume()
  await morePublished(100)
  const sessionsBefore = subscribers.map(({ sessions }) => sessions.length)

  await redis.kill()
  for (const port of ports) await eventually(async () => (await health(port)) === 503)
  await setTimeout(OUTAGE_MS)
  await redis.restart()
  await morePublished(50)
  isPublishing = false
  await publishers
  for (const port of ports) await eventually(async () => (await health(port)) === 200)

  const ends = new Map<string, { readonly epoch: string; readonly offset: number }>()
  for (const { channel } of subscribers.slice(0, CHANNELS)) {
    const { result } = await api(ports[0], 'history', { channel, limit: 0 })
    ends.set(channel, required(result))
  }
  await eventually(() =>
    subscribers.every((subscriber) => subscriber.isAt(ends.get(subscriber.channel) ?? { epoch: '', offset: 0 }))
  )

  t.equal(acknowledged.length, next)
  t.ok(errors.unreachable > 0, 'a relay was unreachable')
  t.ok(errors.rejected > 0, 'publications were rejected while Redis was down')
  t.same([...codes], [100])
  t.ok(
    sessionsBefore.every((sessions) => sessions === 1),
    'every client recovers after a relay is killed and after Redis is suspended'
  )
  t.ok(
    subscribers.every(({ sessions }) => sessions.length === 2),
    'every client learns that it cannot recover from an empty Redis'
  )

  checkSequences(t, subscribers, acknowledged)

  const { body } = await send(`http://127.0.0.1:${ports[0]}`, '/metrics')
  // At least one: a Redis that is suspended for two seconds may respond in time.
  t.match(body, /^relay_engine_outages_total [1-9]\d*$/m, 'outages are counted')
})

const health = async (port: number): Promise<number> => (await send(`http://127.0.0.1:${port}`, '/health')).status
