import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { epochMs } from '../harness/epoch.js'
import { type Latency, latencyPercentiles } from '../harness/statistics.js'
import { DIALECTS } from './dialect.js'
import { Subscriber } from './subscriber.js'

// A part of the clients of the scale run. It reads one order per line and writes one result per line.

export interface ConnectOrder {
  readonly kind: 'connect'
  /** The clients are distributed over these ports. */
  readonly ports: readonly number[]
  /** The clients are distributed over these addresses, because an address has a limited number of outgoing ports. */
  readonly hosts: readonly string[]
  readonly secret: string
  readonly clients: number
  /** The number of the first client, which makes its user unique. */
  readonly first: number
  readonly channels: number
  /** One of so many clients measures latencies. */
  readonly readEvery: number
  readonly atOnce: number
}

export type ScaleOrder = ConnectOrder | { readonly kind: 'figures' }

/** The deliveries and latencies of the clients since the last request. */
export interface ScaleFigures extends Latency {
  readonly connected: number
  readonly deliveries: number
  /** When the last publication arrived, as `epochMs`. */
  readonly lastAt: number
  /** The longest time between two calls of a timer with an interval of 10 ms. */
  readonly pauseMs: number
}

let clients = new Set<Subscriber>()
let deliveries = 0
let latencies: number[] = []
let lastAt = 0
const pauses = monitorEventLoopDelay({ resolution: 10 })
pauses.enable()

const received = (message: string | null): void => {
  const [, sentAt] = /"sentAt":([\d.]+)/.exec(message ?? '') ?? []
  lastAt = epochMs()
  deliveries += 1
  if (sentAt !== undefined) latencies.push(lastAt - Number(sentAt))
}

const connectAll = async (order: ConnectOrder): Promise<void> => {
  const key = secretKey(order.secret)
  clients = new Set()
  let next = 0
  const connectOne = (number: number): Promise<void> =>
    new Promise((resolve, reject) => {
      // Both indexes are in range: there is at least one port and one host.
      const port = order.ports[number % order.ports.length] as number
      const host = order.hosts[Math.floor(number / order.ports.length) % order.hosts.length] as string
      const token = signJwt({ sub: `user-${number}` }, key, { lifetimeSeconds: 3600 })
      const channel = `floor:${number % order.channels}`
      const failed = (error: unknown): void => {
        clients.delete(client)
        client.end()
        reject(error)
      }
      const client = new Subscriber(
        port,
        DIALECTS.centrifugo,
        { token, channel },
        { subscribed: resolve, publication: received, failed },
        { readsPublications: number % order.readEvery === 0, host }
      )
      clients.add(client)
    })
  const connectNext = async (): Promise<void> => {
    while (next < order.clients) await connectOne(order.first + next++)
  }
  await Promise.all(Array.from({ length: order.atOnce }, connectNext))
}

const figures = (): ScaleFigures => {
  const pauseMs = pauses.max / 1e6
  const result = { connected: clients.size, deliveries, lastAt, pauseMs, ...latencyPercentiles(latencies) }
  pauses.reset()
  deliveries = 0
  latencies = []
  return result
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const order: ScaleOrder = JSON.parse(line)
    if (order.kind === 'connect') await connectAll(order)
    process.stdout.write(`result ${JSON.stringify(figures())}\n`)
  } catch (error) {
    process.stdout.write(`result ${JSON.stringify({ error: String(error) })}\n`)
  }
}
