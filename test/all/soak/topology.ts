import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Teardown } from '../../helper/child.js'
import { eventually } from '../../helper/eventually.js'
import { startRedis, type TestRedis } from '../../helper/redis.js'
import { required } from '../../helper/required.js'
import { CHANNELS, relayFile, type SoakChannel } from './channels.js'
import { OfficialSubscriber, type TransportName } from './official-subscriber.js'
import { Api, Publisher } from './publisher.js'
import type { Random } from './random.js'
import { RawSubscriber } from './raw-subscriber.js'
import { RedisLink } from './redis-link.js'
import { DEADLINE_MS, RelayProcess } from './relay-process.js'
import type { Report, Subscriber } from './subscriber.js'

const NODES = 3
export const WORKERS = 2

export interface TopologyOptions {
  readonly t: Teardown
  readonly folder: string
  readonly random: Random
  readonly report: Report
}

/** Relays that share their channels, their publisher and their clients. */
export class Topology {
  readonly name: string
  readonly relays: readonly RelayProcess[]
  readonly api: Api
  readonly publisher: Publisher
  readonly subscribers: Subscriber[] = []
  /** How often stored publications were destroyed. */
  dataLosses = 0
  readonly #options: TopologyOptions
  readonly #config: string
  #clients = 0

  constructor(name: string, relays: readonly RelayProcess[], config: string, options: TopologyOptions) {
    this.name = name
    this.relays = relays
    this.#config = config
    this.#options = options
    this.api = new Api(this.urls, options.random.fork())
    this.publisher = new Publisher(this.api, (channel, { message }) =>
      options.report({
        subject: `${name} publisher`,
        channel,
        rule: 'a valid publication is not rejected',
        expected: 'a confirmation',
        received: message
      })
    )
  }

  get urls(): readonly string[] {
    return this.relays.map(({ url }) => url)
  }

  /** Called when a fault has destroyed what the relays had stored. */
  loseData(): void {
    this.dataLosses++
    for (const { journals } of this.subscribers) for (const journal of journals) journal.dataLost()
  }

  configure(text: string): void {
    writeFileSync(this.#config, text)
  }

  addOfficial(transport: TransportName, channels: readonly SoakChannel[]): void {
    const url = required(this.urls[this.#clients % this.urls.length])
    const name = this.#clientName(`official-${transport}`)
    this.subscribers.push(new OfficialSubscriber({ name, url, transport, channels, report: this.#options.report }))
  }

  addRaw(channels: readonly SoakChannel[], isServerSide: boolean): void {
    this.subscribers.push(this.#raw(isServerSide ? 'raw-server-side' : 'raw', channels, isServerSide, false))
  }

  /** A client that the caller stops again. */
  addTemporary(channels: readonly SoakChannel[]): Subscriber {
    const subscriber = this.#raw('temporary', channels, false, true)
    this.subscribers.push(subscriber)
    return subscriber
  }

  #raw(kind: string, channels: readonly SoakChannel[], isServerSide: boolean, isTemporary: boolean): RawSubscriber {
    const { random, report } = this.#options
    const name = this.#clientName(kind)
    return new RawSubscriber({
      name,
      urls: this.urls,
      channels,
      isServerSide,
      isTemporary,
      random: random.fork(),
      report
    })
  }

  #clientName(kind: string): string {
    return `${this.name}/${kind}-${++this.#clients}`
  }
}

/** Subscribes clients of every kind; each channel has some of every kind. */
export const addSubscribers = (topology: Topology, count: number, random: Random): void => {
  for (let index = 0; index < count; index++) {
    // A bulk channel has the clients of its own that a fault pauses.
    const channels = random.some(
      CHANNELS.filter(({ name }) => !name.startsWith('bulk:')),
      3
    )
    if (index % 8 === 0) topology.addOfficial('http_stream', channels)
    else if (index % 8 === 1) topology.addOfficial('sse', channels)
    else if (index % 8 === 2) topology.addRaw(channels, true)
    else if (index % 2 === 0) topology.addOfficial('websocket', channels)
    else topology.addRaw(channels, false)
  }
  for (const channel of CHANNELS.filter(({ name }) => /^(bulk|floor):/.test(name)))
    for (let index = 0; index < 3; index++) topology.addRaw([channel], false)
}

export class RedisNodes extends Topology {
  readonly redis: TestRedis
  /** The connections of every node to Redis, in the order of `relays`. */
  readonly links: readonly RedisLink[]

  private constructor(
    redis: TestRedis,
    links: readonly RedisLink[],
    relays: readonly RelayProcess[],
    config: string,
    options: TopologyOptions
  ) {
    super('redis', relays, config, options)
    this.redis = redis
    this.links = links
  }

  /** Three nodes on one Redis that writes every command to its disk. */
  static async start(options: TopologyOptions): Promise<RedisNodes> {
    const { t, folder, report } = options
    const redis = await startRedis(t, { args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
    const config = writeConfig(folder, 'redis')
    const links = await Promise.all(Array.from({ length: NODES }, () => RedisLink.start(t, redis.port)))
    const relays = await Promise.all(
      links.map(({ url }, index) =>
        RelayProcess.start(t, {
          name: `redis/node-${index + 1}`,
          config,
          env: { RELAY_ENGINE: 'redis', REDIS_URL: url },
          onFailure: processFailure(report)
        })
      )
    )
    return new RedisNodes(redis, links, relays, config, options)
  }
}

export class WorkerRelay extends Topology {
  /** The processes that serve clients, as far as the test knows. */
  known: readonly number[] = []

  static async start(options: TopologyOptions): Promise<WorkerRelay> {
    const { t, folder, report } = options
    const config = writeConfig(folder, 'workers')
    const relay = await RelayProcess.start(t, {
      name: 'workers/relay',
      config,
      env: { RELAY_WORKERS: String(WORKERS) },
      onFailure: processFailure(report)
    })
    const topology = new WorkerRelay('workers', [relay], config, options)
    await topology.allServe()
    return topology
  }

  /** Resolves when every worker serves clients. A worker that ends before all have started ends the relay. */
  async allServe(): Promise<void> {
    const isServing = async (): Promise<boolean> => {
      const { nodes } = await this.api.call('info', {})
      return Array.isArray(nodes) && nodes.length === WORKERS && this.relay.workers().length === WORKERS
    }
    await eventually(isServing, { label: 'all workers serve clients', deadlineMs: DEADLINE_MS })
    this.known = this.relay.workers()
  }

  get relay(): RelayProcess {
    // The constructor received it.
    return this.relays[0] as RelayProcess
  }
}

const writeConfig = (folder: string, name: string): string => {
  const config = join(folder, `${name}.json`)
  writeFileSync(config, JSON.stringify(relayFile(0)))
  return config
}

const processFailure =
  (report: Report) =>
  (subject: string, rule: string, received: string): void =>
    report({ subject, channel: '', rule, expected: 'a relay that serves its clients', received })
