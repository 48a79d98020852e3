import { jsonCodec } from '../../src/relay/core/codec/json-codec.js'
import type { ClientTransport, Framing } from '../../src/relay/core/codec/transport.js'
import { DISCONNECT_NORMAL, type Disconnect } from '../../src/relay/core/codes.js'
import type { Delivery } from '../../src/relay/core/engine.js'
import { DeltaPatches } from '../../src/relay/core/fan-out/delta.js'
import { conflator } from '../../src/relay/core/merging/keyed-list.js'
import type { Publication } from '../../src/relay/core/publication.js'
import { PLAIN_PUBLICATION } from '../../src/relay/core/publish/publish.js'
import { Relay } from '../../src/relay/core/relay.js'
import type { Client } from '../../src/relay/core/session/client.js'
import type { RelayDependencies } from '../../src/relay/core/session/context.js'
import { MemoryEngine, MemoryUserConnections, SingleNodeCluster } from '../../src/relay/engine/memory.js'
import { MemoryPresence } from '../../src/relay/engine/memory-presence.js'
import { MemoryUserRates } from '../../src/relay/engine/memory-user-rates.js'
import { TokenChecks } from '../../src/relay/token-check.js'
import { NO_EVENT_PROXIES } from './no-event-proxies.js'
import { NO_METRICS } from './no-metrics.js'
import { type ConfigFile, configOf, relayToken } from './relay-rules.js'
import type { ServerMessage } from './server-message.js'

export const START_MS = 1_893_456_000_000

export type Message = Readonly<Record<string, unknown>>

const plainText: Framing = {
  name: 'test',
  codec: jsonCodec,
  frame: (message) => Buffer.from(message),
  frameParts: (message) => message
}

/** A client connection without a network. It stores what is sent, and the test controls how much it accepts. */
export class FakeSink implements ClientTransport {
  readonly stream = this
  readonly name = 'websocket'
  readonly framing: Framing
  readonly pingBytes = Buffer.from('{}')
  readonly address = '192.0.2.1'
  readonly requestHeaders = null
  readonly hasOwnPings = false
  readonly isUnidirectional = false
  readonly isEmulated: boolean
  /** One entry per write. */
  readonly writes: string[] = []
  /** The same as bytes. */
  readonly frames: Buffer[] = []
  closedWith: Disconnect | null = null
  writableLength = 0
  isStuck = false
  isPaused = false
  readonly #waiters: (() => void)[] = []
  /** What was written since `cork`. */
  #corked: Buffer[] | null = null

  constructor(isEmulated = false, framing = plainText) {
    this.isEmulated = isEmulated
    this.framing = framing
  }

  write(bytes: Buffer): void {
    if (this.#corked !== null) {
      this.#corked.push(bytes)
      return
    }
    this.writes.push(bytes.toString())
    this.frames.push(bytes)
    if (this.isStuck) this.writableLength += bytes.length
  }

  cork(): void {
    this.#corked = []
  }

  uncork(): void {
    const written = this.#corked ?? []
    this.#corked = null
    this.write(Buffer.concat(written))
  }

  onceDrained(then: () => void): void {
    this.#waiters.push(then)
  }

  /** Accepts everything. */
  drain(): void {
    this.isStuck = false
    this.writableLength = 0
    for (const then of this.#waiters.splice(0)) then()
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  close(reason: Disconnect): void {
    this.closedWith = reason
  }

  drop(): void {
    this.closedWith = DISCONNECT_NORMAL
  }
}

export interface FakeClient {
  readonly sink: FakeSink
  readonly client: Client
  /** Sends commands in one message and returns the messages since the last call. */
  send(...commands: readonly (Message | string)[]): Promise<ServerMessage[]>
  /** The messages since the last call. */
  received(): ServerMessage[]
  /** `3501 bad request`, or null while it is open. */
  readonly closed: string | null
}

export interface TestRelay {
  readonly relay: Relay
  readonly engine: MemoryEngine
  readonly patches: DeltaPatches
  /** The hub as the engine's delivery interface. */
  readonly delivery: Delivery
  readonly clock: { nowMs: number }
  client(transport?: FakeSink): FakeClient
  /** A client that is connected as this user. */
  connected(user: string, claims?: Message): Promise<FakeClient>
  token(claims: Message, lifetimeSeconds?: number): string
  publish(channel: string, data: unknown, more?: Partial<typeof PLAIN_PUBLICATION>): unknown
  /** The end of a turn of the event loop. */
  endTurn(): void
  /** Number of timers that have not run. */
  readonly pendingTimers: number
  /** Advances the time, and runs the timers that are due and the relay's periodic checks. */
  advance(ms: number): Promise<void>
  /** Sets the system clock forward or back; the monotonic clock does not change. */
  step(ms: number): void
}

/** Lets everything run that waits for nothing but resolved promises. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A relay without sockets, ports or timers. */
export const coreRelay = (file?: ConfigFile, parts: Partial<RelayDependencies> = {}): TestRelay => {
  const config = configOf(file)
  const clock = { nowMs: START_MS }
  const nowMs = (): number => clock.nowMs
  let stepsMs = 0
  const monotonicMs = (): number => clock.nowMs - stepsMs - START_MS + 5000
  let epochs = 0
  let ids = 0
  const tasks: (() => void)[] = []
  const timers = new Set<{ readonly atMs: number; readonly task: () => void }>()
  const patches = new DeltaPatches()
  const engine = new MemoryEngine({ nowMs, monotonicMs, newEpoch: () => `epoch${++epochs}` })
  const tokenChecks = new TokenChecks({ monotonicMs, log: { warn: () => undefined } })
  const relay = new Relay(
    {
      broker: engine,
      history: engine,
      maps: engine.maps,
      presence: new MemoryPresence({ nowMs, monotonicMs }),
      cluster: new SingleNodeCluster(),
      userConnections: new MemoryUserConnections(),
      userRates: new MemoryUserRates(monotonicMs),
      eventProxies: NO_EVENT_PROXIES,
      checkToken: tokenChecks.build(config.tokens.connection),
      checkSubscriptionToken: tokenChecks.build(config.tokens.subscription),
      nowMs,
      monotonicMs,
      random: () => 0.5,
      newId: () => `id-${++ids}`,
      schemaError: () => null,
      conflator,
      delayPushAfterReply: (task) => task(),
      tokenRejected: () => undefined,
      limitReached: () => undefined,
      atEndOfTurn: (task) => void tasks.push(task),
      setTimer: (task, ms) => {
        const timer = { atMs: monotonicMs() + ms, task }
        timers.add(timer)
        return () => void timers.delete(timer)
      },
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      metrics: NO_METRICS,
      traceDelivery: null,
      processStats: () => ({ uptimeSeconds: 0, memoryBytes: 0 }),
      name: 'relay',
      version: 'test',
      ...parts
    },
    config,
    patches
  )
  const { broker = engine } = parts
  let delivery: Delivery | null = null
  const startBroker = broker.start.bind(broker)
  broker.start = (to) => {
    delivery = to
    return startBroker(to)
  }
  void relay.start()

  const endTurn = (): void => {
    for (const task of tasks.splice(0)) task()
  }
  const token = (claims: Message, lifetimeSeconds = 3600): string =>
    relayToken(claims, { nowMs: clock.nowMs, lifetimeSeconds })

  const client = (transport = new FakeSink()): FakeClient => {
    const connection = relay.connect(transport)
    let read = 0
    const received = (): ServerMessage[] => {
      endTurn()
      const fresh = transport.writes.slice(read)
      read = transport.writes.length
      return fresh.flatMap((write) => write.split(/\n|(?<=\})(?=\{)/)).map((text): ServerMessage => JSON.parse(text))
    }
    return {
      sink: transport,
      client: connection,
      received,
      send: async (...commands) => {
        connection.handleFrame(
          commands.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))).join('\n')
        )
        await settled()
        return received()
      },
      get closed() {
        return transport.closedWith === null ? null : `${transport.closedWith.code} ${transport.closedWith.reason}`
      }
    }
  }

  return {
    relay,
    engine,
    patches,
    get delivery() {
      if (delivery === null) throw new Error('the relay has not started its broker')
      return delivery
    },
    clock,
    client,
    connected: async (user, claims = {}) => {
      const connecting = client()
      await connecting.send({ id: 1, connect: { token: token({ sub: user, ...claims }) } })
      return connecting
    },
    token,
    publish: (channel, data, more = {}) =>
      relay.publish(channel, { ...PLAIN_PUBLICATION, data: JSON.stringify(data), ...more }),
    endTurn,
    get pendingTimers() {
      return timers.size
    },
    advance: async (ms) => {
      const untilMs = monotonicMs() + ms
      for (;;) {
        const [next] = [...timers].sort((one, other) => one.atMs - other.atMs)
        if (next === undefined || next.atMs > untilMs) break
        timers.delete(next)
        clock.nowMs += Math.max(0, next.atMs - monotonicMs())
        next.task()
      }
      clock.nowMs += untilMs - monotonicMs()
      relay.tick()
      await settled()
      endTurn()
    },
    step: (ms) => {
      stepsMs += ms
      clock.nowMs += ms
    }
  }
}

/** A publication without data of its own, as an engine delivers it. */
export const publicationAt = (offset: number): Publication => ({
  data: String(offset),
  offset,
  info: null,
  tags: null,
  time: 0,
  delta: false,
  version: 0
})

/** A namespace named `chat` with these options, and a token secret. */
export const withNamespace = (options: Message, client: Message = {}): ConfigFile => ({
  client,
  channel: { namespaces: [{ name: 'chat', ...options }] }
})
