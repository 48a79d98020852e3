import { createInterface } from 'node:readline'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { latencyPercentiles } from '../harness/statistics.js'
import { DIALECTS } from './dialect.js'
import { positionBatch } from './position-batch.js'
import { Publishing, publishRequest } from './publishing.js'
import { type ReadingOptions, Subscriber } from './subscriber.js'

// The load generator of the soak run: publishers, subscribers that are replaced in turn, and slow readers. The first
// line of its input is the order; each further line requests the figures of the time since the last one.

export interface SoakOrder {
  readonly port: number
  readonly secret: string
  readonly key: string
  readonly clients: number
  readonly channels: number
  /** Publications per second and channel. */
  readonly rate: number
  /** Share of the clients that read slowly. They have a channel of their own, with long publications. */
  readonly slowShare: number
  /** Share of the other clients that are replaced within a minute. */
  readonly churnPerMinute: number
}

export interface SoakFigures {
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly deliveries: number
  /** Clients that were replaced by new ones. */
  readonly replaced: number
  /** Other connections that ended without a reason. */
  readonly failures: number
}

/** A slow reader reads a fourth of what is published to its channel. */
const SLOW_CHANNEL = 'floor:slow'
const SLOW_BATCHES = 10
const SLOW_PUBLISHES_PER_SECOND = 10
const SLOW_BYTES_PER_SECOND = 64 * 1024
/** A slow reader connects again after this time. It reads the end of a closed connection only after everything before it. */
const SLOW_CONNECTION_MS = 30_000

/** Every tenth client measures latencies. */
const PROBE_EVERY = 10
const AT_ONCE = 64
const PUBLISH_CONNECTIONS = 8
const TOKEN_SECONDS = 24 * 3600

class SoakLoad {
  readonly #order: SoakOrder
  readonly #tokenKey: ReturnType<typeof secretKey>
  readonly #clients: Subscriber[] = []
  #users = 0
  #latencies: number[] = []
  #deliveries = 0
  #replaced = 0
  #failures = 0

  constructor(order: SoakOrder) {
    this.#order = order
    this.#tokenKey = secretKey(order.secret)
  }

  /** Resolves when all clients are subscribed and publishing has begun. */
  async start(): Promise<void> {
    const { clients, slowShare, port } = this.#order
    const slow = Math.round(clients * slowShare)
    let next = 0
    const connectNext = async (): Promise<void> => {
      while (next < clients - slow) await this.#connect(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, connectNext))
    for (let index = 0; index < slow; index++) this.#connectSlow()
    const publishing = await Publishing.open([port], PUBLISH_CONNECTIONS, [], (isOk) => {
      if (!isOk) this.#failures += 1
    })
    this.#publish(publishing)
    this.#churn()
  }

  /** The figures since the last call. */
  figures(): SoakFigures {
    const latencies = this.#latencies
    const figures = {
      ...latencyPercentiles(latencies),
      deliveries: this.#deliveries,
      replaced: this.#replaced,
      failures: this.#failures
    }
    this.#latencies = []
    this.#deliveries = 0
    this.#replaced = 0
    this.#failures = 0
    return figures
  }

  #connect(index: number): Promise<void> {
    return new Promise((resolve) => {
      const readsPublications = index % PROBE_EVERY === 0
      const channel = `floor:${index % this.#order.channels}`
      const client = this.#subscriber(channel, { readsPublications }, resolve, () => {
        // The client may have been replaced since.
        if (this.#clients[index] !== client) return
        this.#failures += 1
        void this.#connect(index)
      })
      this.#clients[index] = client
    })
  }

  #connectSlow(): void {
    const ignore = (): void => undefined
    const client = this.#subscriber(SLOW_CHANNEL, { bytesPerSecond: SLOW_BYTES_PER_SECOND }, ignore, ignore)
    setTimeout(() => {
      client.end()
      this.#connectSlow()
    }, SLOW_CONNECTION_MS)
  }

  #subscriber(channel: string, reading: ReadingOptions, subscribed: () => void, ended: () => void): Subscriber {
    const token = signJwt({ sub: `user-${this.#users++}` }, this.#tokenKey, { lifetimeSeconds: TOKEN_SECONDS })
    let hasEnded = false
    const subscriber = new Subscriber(
      this.#order.port,
      DIALECTS.centrifugo,
      { token, channel },
      {
        subscribed,
        publication: (message) => this.#received(message),
        failed: () => {
          if (hasEnded) return
          hasEnded = true
          subscriber.end()
          ended()
        }
      },
      reading
    )
    return subscriber
  }

  #received(message: string | null): void {
    this.#deliveries += 1
    if (message === null) return
    const [, sentAt] = /"sentAt":([\d.]+)/.exec(message) ?? []
    if (sentAt !== undefined) this.#latencies.push(performance.now() - Number(sentAt))
  }

  /** Publishes to the channels in turn at a steady rate, and to the channel of the slow readers. */
  #publish(publishing: Publishing): void {
    const { key, channels, rate } = this.#order
    const batch = positionBatch()
    let index = 0
    setInterval(
      () => {
        const data = `{"sentAt":${performance.now()},"batch":${batch}}`
        publishing.send(publishRequest(key, `floor:${index++ % channels}`, data))
      },
      1000 / (channels * rate)
    )
    const long = publishRequest(key, SLOW_CHANNEL, `[${Array(SLOW_BATCHES).fill(batch).join()}]`)
    setInterval(() => publishing.send(long), 1000 / SLOW_PUBLISHES_PER_SECOND)
  }

  /** Replaces the clients in turn. */
  #churn(): void {
    const { churnPerMinute } = this.#order
    let index = 0
    setInterval(
      () => {
        index = (index + 1) % this.#clients.length
        this.#clients[index]?.end()
        this.#replaced += 1
        void this.#connect(index)
      },
      60_000 / (this.#clients.length * churnPerMinute)
    )
  }
}

let load: SoakLoad | null = null
for await (const line of createInterface({ input: process.stdin })) {
  if (load === null) {
    load = new SoakLoad(JSON.parse(line))
    await load.start()
  }
  process.stdout.write(`result ${JSON.stringify(load.figures())}\n`)
}
