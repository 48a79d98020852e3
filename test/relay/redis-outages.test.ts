import { setTimeout } from 'node:timers/promises'
import type { PublicationContext, SubscribedContext } from 'centrifuge'
import t, { type Test } from 'tap'
import type { Child } from '../helper/child.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { startRedis } from '../helper/redis.js'
import { officialClient } from '../helper/relay.js'
import { API_KEY, HMAC_SECRET } from '../helper/relay-rules.js'

const CLIENTS = 300
const CHANNELS = 10
const PUBLICATIONS = 2_000
const PUBLISHERS = 4
const AWAY_MS = 2_000

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

/** What a client heard without a break: the stream, the place it began at, and all that followed. */
interface Stretch {
  readonly epoch: string
  readonly from: number
  readonly heard: (readonly [offset: number, n: number])[]
}

/** A client's life on a channel, as it was told. Being told that it cannot recover begins a new stretch. */
class Listener {
  readonly channel: string
  readonly stretches: Stretch[] = []

  constructor(channel: string) {
    this.channel = channel
  }

  subscribed({ streamPosition, wasRecovering, recovered }: SubscribedContext): void {
    if (streamPosition === undefined) throw new Error('a subscription without a place')
    if (wasRecovering && recovered) return
    this.stretches.push({ epoch: streamPosition.epoch, from: streamPosition.offset, heard: [] })
  }

  publication({ offset = 0, data }: PublicationContext): void {
    this.stretches.at(-1)?.heard.push([offset, data.n])
  }

  isAt({ epoch, offset }: { readonly epoch: string; readonly offset: number }): boolean {
    const last = this.stretches.at(-1)
    return last?.epoch === epoch && (last.heard.at(-1)?.[0] ?? last.from) === offset
  }
}

t.test(`three relays, ${CLIENTS} clients, ${PUBLICATIONS} publications, and everything that can go away`, async (t) => {
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
    await program.waitForLine('listening at', 60_000)
    return program
  }
  const relays = await Promise.all(ports.map((port) => startRelay(t, port)))
  const api = async (port: number, method: string, request: unknown): Promise<Record<string, unknown>> => {
    const { body } = await send(`http://127.0.0.1:${port}`, `/api/${method}`, {
      method: 'POST',
      body: JSON.stringify(request),
      headers: { 'x-api-key': API_KEY }
    })
    return JSON.parse(body)
  }

  const listeners = Array.from({ length: CLIENTS }, (_, index) => {
    const listener = new Listener(`seq:${index % CHANNELS}`)
    const port = ports[Math.floor(index / CHANNELS) % ports.length] as number
    const patience = { minReconnectDelay: 50, maxReconnectDelay: 500, timeout: 30_000 }
    const client = officialClient(t, { port }, 'websocket', patience)
    const subscription = client.newSubscription(listener.channel, { minResubscribeDelay: 50, maxResubscribeDelay: 500 })
    subscription.on('subscribed', (context) => listener.subscribed(context))
    subscription.on('publication', (context) => listener.publication(context))
    subscription.subscribe()
    client.connect()
    return listener
  })
  await eventually(() => listeners.every(({ stretches }) => stretches.length > 0))

  const acknowledged: {
    readonly channel: string
    readonly n: number
    readonly epoch: string
    readonly offset: number
  }[] = []
  const codes = new Set<number>()
  const errors = { refused: 0, unreachable: 0 }
  /** Until a relay has taken it, as a publisher does that must not lose anything. The key keeps it from being made twice. */
  const publish = async (n: number): Promise<void> => {
    const channel = `seq:${n % CHANNELS}`
    for (let attempt = 0; ; attempt++) {
      try {
        const port = ports[(n + attempt) % ports.length] as number
        const { result, error } = await api(port, 'publish', { channel, data: { n }, idempotency_key: String(n) })
        if (error === undefined) {
          acknowledged.push({ channel, n, ...(result as { epoch: string; offset: number }) })
          return
        }
        codes.add((error as { code: number }).code)
        errors.refused++
      } catch {
        errors.unreachable++
      }
      await setTimeout(50)
    }
  }
  let next = 0
  const publishers = Promise.all(
    Array.from({ length: PUBLISHERS }, async () => {
      while (next < PUBLICATIONS) await publish(next++)
    })
  )
  const published = (share: number): Promise<unknown> => eventually(() => acknowledged.length >= PUBLICATIONS * share)

  await published(0.2)
  relays[1]?.signal('SIGKILL')
  await relays[1]?.exited
  await published(0.3)
  relays[1] = await startRelay(t, ports[1] as number)
  await published(0.4)

  redis.pause()
  await setTimeout(AWAY_MS)
  // Relays wait about as long for an answer before they give it up.
  for (const port of ports) await eventually(async () => (await health(port)) === 503)
  redis.resume()
  await published(0.7)
  const toldBefore = listeners.map(({ stretches }) => stretches.length)

  await redis.kill()
  for (const port of ports) await eventually(async () => (await health(port)) === 503)
  await setTimeout(AWAY_MS)
  await redis.restart()
  await publishers
  for (const port of ports) await eventually(async () => (await health(port)) === 200)

  const tops = new Map<string, { readonly epoch: string; readonly offset: number }>()
  for (const { channel } of listeners.slice(0, CHANNELS)) {
    const { result } = await api(ports[0] as number, 'history', { channel, limit: 0 })
    tops.set(channel, result as { epoch: string; offset: number })
  }
  await eventually(() =>
    listeners.every((listener) => listener.isAt(tops.get(listener.channel) ?? { epoch: '', offset: 0 }))
  )

  t.equal(acknowledged.length, PUBLICATIONS)
  t.ok(errors.unreachable > 0, 'a relay was away')
  t.ok(errors.refused > 0, 'Redis was away')
  t.same([...codes], [100])
  t.ok(
    toldBefore.every((stretches) => stretches === 1),
    'what a relay that is killed and a Redis that stands still cost can be recovered by all'
  )
  t.ok(
    listeners.every(({ stretches }) => stretches.length === 2),
    'an empty Redis cannot give anything back, and all are told so'
  )

  const truth = new Map<string, number>()
  let holes = 0
  let contradictions = 0
  for (const { channel, stretches } of listeners) {
    for (const { epoch, from, heard } of stretches) {
      for (const [index, [offset, n]] of heard.entries()) {
        if (offset !== from + index + 1) holes++
        const place = `${channel} ${epoch} ${offset}`
        if ((truth.get(place) ?? n) !== n) contradictions++
        truth.set(place, n)
      }
    }
  }
  t.equal(holes, 0, 'nothing is missing, doubled or out of order')
  t.equal(contradictions, 0, 'all hear the same')
  for (const { channel, n, epoch, offset } of acknowledged) {
    const place = `${channel} ${epoch} ${offset}`
    if (truth.has(place) && truth.get(place) !== n)
      t.fail(`${place} is another publication than the publisher was told`)
  }
  const perEpoch = [...truth].map(([place, n]) => `${place.split(' ')[1]} ${n}`)
  t.equal(new Set(perEpoch).size, perEpoch.length, 'no publication was made twice')

  const { body } = await send(`http://127.0.0.1:${ports[0]}`, '/metrics')
  // A Redis that stood still for two seconds may have answered in time.
  t.match(body, /^relay_engine_outages_total [1-9]\d*$/m, 'what was away was counted')
})

const health = async (port: number): Promise<number> => (await send(`http://127.0.0.1:${port}`, '/health')).status
