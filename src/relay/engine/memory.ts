import {
  after,
  type Broker,
  type Delivery,
  type History,
  type HistoryPage,
  type HistoryRange,
  type JoinOrLeave,
  type MaybePromise,
  type NewPublication,
  NO_POSITION,
  type Position,
  type Presence,
  type Publication,
  type Published
} from '../core/broker.js'
import { hasHistory } from '../core/channels.js'
import type { Clocks } from '../core/clocks.js'
import type { HistoryOptions } from '../core/options.js'
import type {
  Cluster,
  Command,
  CommandResult,
  NodeResult,
  SurveyHandlers,
  SurveyName,
  SurveyParams,
  SurveyResult
} from '../core/survey.js'
import type { UserConnection, UserConnections } from '../core/user-connections.js'
import type { Engine } from './engine.js'

/** A place that nothing was ever published behind: who asks for made-up channels must not fill the memory with them. */
const UNUSED_MS = 10 * 60 * 1000

/** The latest publications of one channel. Its place outlives them. `nowMs` is the monotonic clock throughout. */
export class MemoryStream {
  #position: Position
  #publications: Publication[] = []
  /** When the publications run out: after a time without a new one. */
  #expiresAt = 0
  /** When the place itself runs out. */
  #forgottenAt = Number.POSITIVE_INFINITY
  #keptMs = 0
  #version = 0
  #versionEpoch = ''

  constructor(epoch: string) {
    this.#position = { epoch, offset: 0 }
  }

  get position(): Position {
    return this.#position
  }

  append(
    publication: Publication,
    { historySize, historyTtlMs, historyMetaTtlMs }: HistoryOptions,
    nowMs: number
  ): void {
    this.expire(nowMs)
    this.#position = { epoch: this.#position.epoch, offset: publication.offset }
    this.#publications.push(publication)
    while (this.#publications.length > historySize) this.#publications.shift()
    this.#expiresAt = nowMs + historyTtlMs
    this.keepFor(Math.max(historyMetaTtlMs, historyTtlMs), nowMs)
  }

  read({ since, limit, reverse }: HistoryRange, nowMs: number): readonly Publication[] {
    this.expire(nowMs)
    if (limit === 0) return []
    const all = this.#publications
    const first = all[0]?.offset ?? 0
    let found: readonly Publication[]
    if (since === null) found = reverse ? all.toReversed() : all
    else if (reverse) found = all.slice(0, Math.max(0, since.offset - first)).toReversed()
    else found = all.slice(Math.max(0, since.offset + 1 - first))
    return limit < 0 ? [...found] : found.slice(0, limit)
  }

  clear(): void {
    this.#publications = []
  }

  isOutdated(version: number, versionEpoch: string): boolean {
    const isSame = versionEpoch === '' || versionEpoch === this.#versionEpoch
    return isSame && version <= this.#version
  }

  setVersion(version: number, versionEpoch: string): void {
    this.#version = version
    this.#versionEpoch = versionEpoch
  }

  keepFor(ms: number, nowMs: number): void {
    const kept = ms > 0 ? ms : Number.POSITIVE_INFINITY
    this.#keptMs = kept
    this.#forgottenAt = nowMs + (this.#position.offset === 0 ? Math.min(kept, UNUSED_MS) : kept)
  }

  /** Nobody listens any more: from now on it is unused. */
  left(nowMs: number): void {
    this.keepFor(this.#keptMs, nowMs)
  }

  isForgotten(nowMs: number): boolean {
    return nowMs >= this.#forgottenAt
  }

  expire(nowMs: number): void {
    if (this.#publications.length > 0 && nowMs >= this.#expiresAt) this.clear()
  }
}

const IDEMPOTENCY_TTL_MS = 5 * 60 * 1000
/** A publisher that makes up keys faster than they run out pushes out the oldest. */
const MAX_RESULTS = 100_000

interface IdempotencyEntry {
  readonly position: Position
  readonly expiresAt: number
}

/**
 * Where publications with an idempotency key went, for as long as the same key must not publish again. `nowMs` is the
 * monotonic clock throughout.
 */
export class IdempotencyCache {
  // In the order in which they were made, which is the order in which they run out.
  readonly #results = new Map<string, IdempotencyEntry>()

  get(channel: string, key: string, nowMs: number): Position | undefined {
    const result = this.#results.get(nameOf(channel, key))
    return result !== undefined && nowMs < result.expiresAt ? result.position : undefined
  }

  set(channel: string, key: string, position: Position, nowMs: number): void {
    const name = nameOf(channel, key)
    this.#results.delete(name)
    this.#results.set(name, { position, expiresAt: nowMs + IDEMPOTENCY_TTL_MS })
    if (this.#results.size > MAX_RESULTS) this.#results.delete(this.#results.keys().next().value as string)
  }

  sweep(nowMs: number): void {
    for (const [name, { expiresAt }] of this.#results) {
      if (expiresAt > nowMs) return
      this.#results.delete(name)
    }
  }
}

// A length in front, so that no channel and key can be read as another channel with another key.
const nameOf = (channel: string, key: string): string => `${channel.length}:${channel}${key}`

export interface MemoryParts extends Clocks {
  /** The name of a stream that is made anew. */
  readonly newEpoch: () => string
}

/** Publications and their history within one process. Everything is answered at once. */
export class MemoryEngine implements Broker, History {
  readonly #clocks: Clocks
  readonly #newEpoch: () => string
  readonly #streams = new Map<string, MemoryStream>()
  readonly #results = new IdempotencyCache()
  /** Channels with subscribers: those are in use, however quiet they are. */
  readonly #listened = new Set<string>()
  #delivery: Delivery | null = null

  constructor(parts: MemoryParts) {
    this.#clocks = parts
    this.#newEpoch = parts.newEpoch
  }

  start(delivery: Delivery): void {
    this.#delivery = delivery
  }

  subscribe(channel: string): void {
    this.#listened.add(channel)
  }

  unsubscribe(channel: string): void {
    this.#listened.delete(channel)
    this.#streams.get(channel)?.left(this.#clocks.monotonicMs())
  }

  isDelivering(): boolean {
    return true
  }

  close(): void {
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
    const placed: Publication = { data, offset, info, tags, time: this.#clocks.nowMs(), delta, version }
    stream?.append(placed, options, nowMs)
    if (version > 0) stream?.setVersion(version, versionEpoch)
    const position = stream?.position ?? NO_POSITION
    if (idempotencyKey !== '') this.#results.set(channel, idempotencyKey, position, nowMs)
    this.#delivery?.publication(channel, placed, position.epoch)
    return { epoch: position.epoch, offset: position.offset, suppressedBy: null }
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    this.#delivery?.joinOrLeave(channel, kind, info)
  }

  read(channel: string, range: HistoryRange, options: HistoryOptions): HistoryPage {
    const nowMs = this.#clocks.monotonicMs()
    const stream = this.#stream(channel, nowMs)
    stream.keepFor(options.historyMetaTtlMs, nowMs)
    const { epoch, offset } = stream.position
    return { epoch, offset, publications: stream.read(range, nowMs) }
  }

  /** The place stays: offsets go on from where they were. */
  remove(channel: string): void {
    this.#streams.get(channel)?.clear()
  }

  /** To be called now and then: forgets what has run out and nobody asks for. */
  sweep(): void {
    const nowMs = this.#clocks.monotonicMs()
    this.#results.sweep(nowMs)
    for (const [channel, stream] of this.#streams) {
      if (this.#isForgotten(channel, stream, nowMs)) this.#streams.delete(channel)
      else stream.expire(nowMs)
    }
  }

  #stream(channel: string, nowMs: number): MemoryStream {
    const known = this.#streams.get(channel)
    if (known !== undefined && !this.#isForgotten(channel, known, nowMs)) return known
    const stream = new MemoryStream(this.#newEpoch())
    this.#streams.set(channel, stream)
    return stream
  }

  #isForgotten(channel: string, stream: MemoryStream, nowMs: number): boolean {
    return stream.isForgotten(nowMs) && !this.#listened.has(channel)
  }
}

interface Entry {
  readonly user: string
  readonly info: string
}

/** Who listens to this process. It ends with the connections, so nothing runs out. */
export class MemoryPresence implements Presence {
  readonly #channels = new Map<string, Map<string, Entry>>()

  add(channel: string, client: string, user: string, info: string): void {
    const entries = this.#channels.get(channel)
    if (entries === undefined) this.#channels.set(channel, new Map([[client, { user, info }]]))
    else entries.set(client, { user, info })
  }

  remove(channel: string, client: string): void {
    const entries = this.#channels.get(channel)
    entries?.delete(client)
    if (entries?.size === 0) this.#channels.delete(channel)
  }

  read(channel: string): ReadonlyMap<string, string> {
    return new Map([...(this.#channels.get(channel) ?? [])].map(([client, { info }]) => [client, info]))
  }

  count(channel: string): { readonly clients: number; readonly users: number } {
    const entries = this.#channels.get(channel)
    return { clients: entries?.size ?? 0, users: new Set([...(entries?.values() ?? [])].map(({ user }) => user)).size }
  }
}

/** A relay that acts alone: it asks itself. */
export class SingleNodeCluster implements Cluster {
  readonly size = 1
  #node = ''
  #answers: SurveyHandlers | null = null

  start(node: string, answers: SurveyHandlers): void {
    this.#node = node
    this.#answers = answers
  }

  survey<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): MaybePromise<readonly NodeResult<Q>[]> {
    const node = this.#node
    return this.#answers === null ? [] : after(this.#answers.handle(survey, params), (result) => [{ node, result }])
  }

  apply<C extends Command>(command: C, params: SurveyParams<C>): MaybePromise<CommandResult<C>> {
    if (this.#answers === null) return { results: [], isConfirmed: false }
    return after(this.#answers.handle(command, params), (result) => ({ results: [result], isConfirmed: true }))
  }

  surveyNode<Q extends SurveyName>(
    node: string,
    survey: Q,
    params: SurveyParams<Q>
  ): MaybePromise<SurveyResult<Q> | null> {
    return node === this.#node && this.#answers !== null ? this.#answers.handle(survey, params) : null
  }

  close(): void {}
}

/** The connections of each user within one process, or at the workers of one. */
export class MemoryUserConnections implements UserConnections {
  readonly #clients = new Map<string, Set<string>>()

  /** Nothing that is counted here can be gone without being removed. */
  add({ user, client }: UserConnection, limit: number): readonly [] | null {
    const clients = this.#clients.get(user)
    if ((clients?.size ?? 0) >= limit && !clients?.has(client)) return []
    if (clients === undefined) this.#clients.set(user, new Set([client]))
    else clients.add(client)
    return null
  }

  remove({ user, client }: UserConnection): void {
    const clients = this.#clients.get(user)
    clients?.delete(client)
    if (clients?.size === 0) this.#clients.delete(user)
  }
}

/** The engine of a relay that is one process and acts alone. */
export const memoryEngine = (parts: MemoryParts): Engine => {
  const memory = new MemoryEngine(parts)
  return {
    broker: memory,
    history: memory,
    presence: new MemoryPresence(),
    cluster: new SingleNodeCluster(),
    userConnections: new MemoryUserConnections(),
    isReady: true,
    sweep: () => memory.sweep(),
    close: () => memory.close()
  }
}
