import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { pace } from '../harness/pace.js'
import { latencyPercentiles } from '../harness/statistics.js'
import { DIALECTS, type DialectName, type Since } from './dialect.js'
import { Publishing, publishRequest } from './publishing.js'
import { Subscriber } from './subscriber.js'

// The load generator: subscribers and a publisher in one process on a separate core. It reads one order per line and
// writes one result per line.

export interface OpenOrder {
  readonly kind: 'open'
  /** The clients are distributed over these ports. */
  readonly ports: readonly number[]
  readonly dialect: DialectName
  readonly secret: string
  readonly clients: number
  readonly channels: number
  /** Clients that connect at the same time. */
  readonly atOnce?: number | undefined
  /** The clients recover the publications after this position. */
  readonly since?: Since | undefined
  /** The ports expect TLS. */
  readonly isEncrypted?: boolean | undefined
  /** One of so many clients of a single channel parses what it receives, the others count bytes. All parse by default. */
  readonly parseEvery?: number | undefined
}

export interface PublishOrder {
  readonly kind: 'publish'
  /** Every publication is sent to each port. */
  readonly ports: readonly number[]
  readonly key: string
  readonly data: string
  readonly channels: number
  readonly connections: number
  readonly seconds: number
  /** Either the number of concurrent publications or the rate is set. */
  readonly inFlight?: number
  readonly perSecond?: number
  /** Additional clients of the first channel that read slowly during the order. Their deliveries do not count. */
  readonly slowReaders?: number
}

export type Order = OpenOrder | PublishOrder | { readonly kind: 'close' }

export interface LoadResult {
  /** Clients opened, or publications sent. */
  readonly count: number
  readonly deliveries: number
  readonly seconds: number
  /** CPU utilisation of the load generator, from 0 to 1. */
  readonly share: number
  /** Milliseconds from the intended time of a publication to its deliveries. */
  readonly p50: number
  readonly p99: number
  readonly p999: number
}

const NO_LATENCY = { p50: 0, p99: 0, p999: 0 }

const channelName = (index: number): string => `floor:${index}`

let subscribers: Subscriber[] = []
let openSlowReader: () => Promise<Subscriber> = () => Promise.reject(new Error('no clients'))
let parseEvery = 1
let onPublication: (client: number) => void = () => undefined
let fail: (error: unknown) => void = () => undefined

/** Measures the duration and the CPU utilisation of this process. */
const timed = async (work: () => Promise<Omit<LoadResult, 'seconds' | 'share'>>): Promise<LoadResult> => {
  const began = performance.now()
  const cpu = process.cpuUsage()
  const result = await work()
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpu)
  return { ...result, seconds, share: (user + system) / 1e6 / seconds }
}

const AT_ONCE = 64
/** Far below what is published, so that the rest waits in the kernel and then in the server. */
const SLOW_BYTES_PER_SECOND = 4096

const open = ({
  ports,
  dialect,
  secret,
  clients,
  channels,
  atOnce = AT_ONCE,
  since,
  isEncrypted = false,
  parseEvery: every = 1
}: OpenOrder): Promise<LoadResult> => {
  parseEvery = every
  const key = secretKey(secret)
  const slowToken = signJwt({ sub: 'slow' }, key, { lifetimeSeconds: 3600 })
  openSlowReader = () =>
    new Promise((resolve, reject) => {
      const slow: Subscriber = new Subscriber(
        ports[0] ?? 0,
        DIALECTS[dialect],
        { token: slowToken, channel: channelName(0) },
        // After it has subscribed, a failure is expected: the relay closes connections that do not reply to a ping.
        { subscribed: () => resolve(slow), publication: () => undefined, failed: reject },
        { isEncrypted, bytesPerSecond: SLOW_BYTES_PER_SECOND }
      )
    })
  const tokens = Array.from({ length: clients }, (_, index) =>
    signJwt({ sub: `user-${index}` }, key, { lifetimeSeconds: 3600 })
  )
  return timed(
    () =>
      new Promise((resolve, reject) => {
        fail = reject
        let ready = 0
        const next = (): void => {
          const index = subscribers.length
          if (index >= clients) return
          // Both indexes are in range: there is at least one port, and one token per client.
          const [port, token] = [ports[index % ports.length] as number, tokens[index] as string]
          subscribers.push(
            new Subscriber(
              port,
              DIALECTS[dialect],
              { token, channel: channelName(index % channels), since },
              {
                subscribed: () => {
                  ready += 1
                  if (ready === clients) resolve({ count: clients, deliveries: 0, ...NO_LATENCY })
                  else next()
                },
                publication: () => onPublication(index),
                failed: (error) => fail(error)
              },
              { isEncrypted, countsBytes: index % parseEvery !== 0 }
            )
          )
        }
        for (let index = 0; index < Math.min(atOnce, clients); index++) next()
      })
  )
}

const close = async (): Promise<LoadResult> => {
  for (const subscriber of subscribers) subscriber.end()
  subscribers = []
  return { count: 0, deliveries: 0, seconds: 0, share: 0, ...NO_LATENCY }
}

/** Under full load only one of these deliveries is timed, because reading the clock is expensive. */
const SAMPLE_EVERY = 31

/** Maximum wait for late deliveries. */
const DRAIN_MS = 60_000
const COUNT_INTERVAL_MS = 50

const publish = async (order: PublishOrder): Promise<LoadResult> => {
  const { ports, channels, seconds, inFlight, perSecond, slowReaders = 0 } = order
  const slow = await Promise.all(Array.from({ length: slowReaders }, () => openSlowReader()))
  const perPublication = subscribers.filter(({ countsBytes }) => !countsBytes).length / channels
  for (const subscriber of subscribers) subscriber.bytes = 0
  const requests = Array.from({ length: channels }, (_, index) =>
    publishRequest(order.key, channelName(index), order.data)
  )
  const sampleEvery = perSecond === undefined ? SAMPLE_EVERY : 1
  const sentAt: number[] = []
  const latencies: number[] = []
  const received = new Uint32Array(subscribers.length)
  let deliveries = 0
  let responses = 0
  let sending = true
  let finish: () => void = () => undefined

  const publishing = await Publishing.open(ports, order.connections, requests, (isOk) => {
    if (!isOk) fail(new Error('a publication was rejected'))
    responses += 1
    step()
  })
  const send = (intendedAt: number): void => {
    sentAt.push(intendedAt)
    publishing.send()
  }
  const step = (): void => {
    // A publication is in flight until its response and all of its deliveries have arrived.
    const done = Math.min(Math.floor(responses / ports.length), Math.floor(deliveries / perPublication))
    if (sending && inFlight !== undefined) while (sentAt.length - done < inFlight) send(performance.now())
    const isConfirmed = responses === sentAt.length * ports.length
    if (!sending && isConfirmed && deliveries === sentAt.length * perPublication) finish()
  }
  onPublication = (client) => {
    deliveries += 1
    // The channels are published to in turn, so a channel receives one publication per round. The casts hold because each
    // subscriber has a counter, and a delivered publication has been sent.
    const round = received[client] as number
    received[client] = round + 1
    if (deliveries % sampleEvery === 0) {
      const sent = sentAt[round * channels + (client % channels)] as number // as above
      latencies.push(performance.now() - sent)
    }
    if (deliveries % perPublication === 0) step()
  }

  const result = await timed(
    () =>
      new Promise((resolve, reject) => {
        fail = reject
        finish = () => resolve({ count: sentAt.length, deliveries: deliveries * parseEvery, ...NO_LATENCY })
        const stopPacing = perSecond === undefined ? () => undefined : pace({ perSecond }, send)
        setTimeout(() => {
          stopPacing()
          sending = false
          setTimeout(
            () => reject(new Error(`${deliveries} deliveries of ${sentAt.length} publications`)),
            DRAIN_MS
          ).unref()
          step()
        }, seconds * 1000)
        step()
      })
  )
  publishing.close()
  for (const reader of slow) reader.end()
  onPublication = () => undefined
  await countedAll(sentAt.length * order.data.length)
  return { ...result, ...latencyPercentiles(latencies) }
}

/** Waits until the clients that only count have received so many bytes. */
const countedAll = async (bytes: number): Promise<void> => {
  const counting = subscribers.filter(({ countsBytes }) => countsBytes)
  const deadline = performance.now() + DRAIN_MS
  while (counting.some((subscriber) => subscriber.bytes < bytes)) {
    if (performance.now() > deadline) throw new Error(`a client received less than ${bytes} bytes`)
    await sleep(COUNT_INTERVAL_MS)
  }
}

const run = (order: Order): Promise<LoadResult> =>
  order.kind === 'open' ? open(order) : order.kind === 'publish' ? publish(order) : close()

for await (const line of createInterface({ input: process.stdin })) {
  try {
    process.stdout.write(`result ${JSON.stringify(await run(JSON.parse(line)))}\n`)
  } catch (error) {
    process.stdout.write(`result ${JSON.stringify({ error: String(error) })}\n`)
  }
}
