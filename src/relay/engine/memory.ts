import { hasHistory } from '../core/channel-names.js'
import type { Clocks } from '../core/clocks.js'
import type {
  Broker,
  Cluster,
  CommandResult,
  Delivery,
  Engine,
  History,
  HistoryRange,
  JoinOrLeave,
  NodeResult,
  RetainedPage,
  SurveyHandler,
  UserConnection,
  UserConnections
} from '../core/engine.js'
import { MultiMap } from '../core/multi-map.js'
import type { HistoryOptions } from '../core/options.js'
import { type NewPublication, NO_POSITION, type Publication, type Published } from '../core/publication.js'
import { MemoryMaps } from './memory-maps.js'
import { MemoryPresence } from './memory-presence.js'
import { ChannelStream, IdempotencyCache } from './memory-stream.js'
import { MemoryUserRates } from './memory-user-rates.js'
import { UnusedEpochs } from './unused-epochs.js'

export interface MemoryEngineDependencies extends Clocks {
  /** Names a new stream of a channel. */
  readonly newEpoch: () => string
}

/** Publications, history and maps within one process. All operations take effect synchronously. */
export class MemoryEngine implements Broker, History {
  readonly maps: MemoryMaps
  readonly #clocks: Clocks
  readonly #epochs: UnusedEpochs
  readonly #streams = new Map<string, ChannelStream>()
  readonly #results = new IdempotencyCache()
  /** Channels with subscribers. Their streams exist before the first publication, and do not expire. */
  readonly #subscribed = new Set<string>()
  #delivery: Delivery | null = null

  constructor(dependencies: MemoryEngineDependencies) {
    this.#clocks = dependencies
    this.#epochs = new UnusedEpochs(dependencies.newEpoch)
    this.maps = new MemoryMaps({
      ...dependencies,
      hasSubscribers: (channel) => this.#subscribed.has(channel),
      deliver: (channel, change, epoch) => this.#delivery?.publication(channel, change, epoch)
    })
  }

  async start(delivery: Delivery): Promise<void> {
    this.#delivery = delivery
  }

  subscribe(channel: string): void {
    this.#subscribed.add(channel)
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#subscribed.delete(channel)
    const stream = this.#streams.get(channel)
    if (stream?.position.offset === 0) this.#streams.delete(channel)
    else stream?.unsubscribed(this.#clocks.monotonicMs())
    this.maps.unsubscribed(channel)
  }

  isDelivering(): boolean {
    return true
  }

  async close(): Promise<void> {
    this.#delivery = null
  }

  publish(channel: string, publication: NewPublication, options: HistoryOptions): Published {
    const nowMs = this.#clocks.monotonicMs()
    const { idempotencyKey, version, versionEpoch } = publication
    const known = idempotencyKey === '' ? undefined : this.#results.get(channel, idempotencyKey, nowMs)
    if (known !== undefined) return { ...known, suppressedBy: 'idempotency' }

    const stream = hasHistory(options) && !publication.skipHistory ? this.#stream(channel, nowMs) : null
    if (version > 0 && stream?.isOutdated(version, versionEpoch)) {
      return { ...stream.position, suppressedBy: 'version' }
    }
    const { data, info, tags, delta } = publication
    const offset = stream === null ? 0 : stream.position.offset + 1
    const untraced: Publication = { data, offset, info, tags, time: this.#clocks.nowMs(), delta, version }
    const { trace } = publication
    const published = trace === undefined ? untraced : { ...untraced, trace }
    stream?.append(published, options, nowMs)
    if (version > 0) stream?.setVersion(version, versionEpoch)
    const position = stream?.position ?? NO_POSITION
    if (idempotencyKey !== '') this.#results.set(channel, idempotencyKey, position, nowMs)
    this.#delivery?.publication(channel, published, position.epoch)
    return { epoch: position.epoch, offset: position.offset, suppressedBy: null }
  }

  async joinOrLeave(channel: string, kind: JoinOrLeave, info: string): Promise<void> {
    this.#delivery?.joinOrLeave(channel, kind, info)
  }

  read(channel: string, range: HistoryRange, options: HistoryOptions): RetainedPage {
    const nowMs = this.#clocks.monotonicMs()
    const stream = this.#existing(channel, nowMs) ?? this.#unused(channel)
    stream.setPositionTtl(options.historyMetaTtlMs, nowMs)
    const { epoch, offset } = stream.position
    const publications = stream.read(range, nowMs)
    return { epoch, offset, publications, oldest: stream.oldestOffset }
  }

  /** Deletes the publications. The position stays, so that offsets continue. */
  async remove(channel: string): Promise<void> {
    this.#streams.get(channel)?.clear()
  }

  /** Called at intervals. Removes expired streams, maps and idempotency results. */
  sweep(): void {
    const nowMs = this.#clocks.monotonicMs()
    this.#results.sweep(nowMs)
    this.maps.sweep()
    for (const [channel, stream] of this.#streams) {
      if (this.#existing(channel, nowMs) !== undefined) stream.expire(nowMs)
    }
  }

  #stream(channel: string, nowMs: number): ChannelStream {
    const known = this.#existing(channel, nowMs)
    if (known !== undefined) return known
    const stream = new ChannelStream(this.#epochs.of(channel))
    this.#streams.set(channel, stream)
    return stream
  }

  /** Stored only for subscribers. */
  #unused(channel: string): ChannelStream {
    const stream = new ChannelStream(this.#epochs.of(channel))
    if (this.#subscribed.has(channel)) this.#streams.set(channel, stream)
    return stream
  }

  /** Removes the stream if it has expired. */
  #existing(channel: string, nowMs: number): ChannelStream | undefined {
    const stream = this.#streams.get(channel)
    if (stream === undefined || !stream.isExpired(nowMs) || this.#subscribed.has(channel)) return stream
    this.#streams.delete(channel)
    this.#epochs.expired(channel)
    return undefined
  }
}

/** The cluster of a relay without other nodes. */
export class SingleNodeCluster implements Cluster {
  readonly size = 1
  #node = ''
  #handler: SurveyHandler | null = null

  async start(node: string, handler: SurveyHandler): Promise<void> {
    this.#node = node
    this.#handler = handler
  }

  async survey(survey: string, params: unknown): Promise<readonly NodeResult[]> {
    if (this.#handler === null) return []
    return [{ node: this.#node, result: await this.#handler.handle(survey, params) }]
  }

  async apply(command: string, params: unknown): Promise<CommandResult> {
    if (this.#handler === null) return { results: [], isConfirmed: false }
    return { results: [await this.#handler.handle(command, params)], isConfirmed: true }
  }

  async surveyNode(node: string, survey: string, params: unknown): Promise<unknown> {
    return node === this.#node && this.#handler !== null ? this.#handler.handle(survey, params) : null
  }

  async hasNode(node: string): Promise<boolean> {
    return node === this.#node
  }

  async close(): Promise<void> {}
}

/** The connections of each user, in a single process or in the primary of several workers. */
export class MemoryUserConnections implements UserConnections {
  readonly #clients = new MultiMap<string, string>()

  /** Every connection is removed when it ends, so no counted connection needs to be checked. */
  add({ user, client }: UserConnection, limit: number): readonly [] | null {
    if (this.#clients.count(user) >= limit && !this.#clients.has(user, client)) return []
    this.#clients.add(user, client)
    return null
  }

  async remove({ user, client }: UserConnection): Promise<void> {
    this.#clients.delete(user, client)
  }
}

/** The engine of a relay in one process. */
export const memoryEngine = (dependencies: MemoryEngineDependencies): Engine => {
  const memory = new MemoryEngine(dependencies)
  const presence = new MemoryPresence(dependencies)
  return {
    broker: memory,
    history: memory,
    maps: memory.maps,
    presence,
    cluster: new SingleNodeCluster(),
    userConnections: new MemoryUserConnections(),
    userRates: new MemoryUserRates(dependencies.monotonicMs),
    channelStates: presence.channelStates,
    isShared: false,
    isReady: true,
    probeChannels: (channel) => [{ channel, server: null }],
    sweep: () => memory.sweep(),
    close: () => memory.close()
  }
}
