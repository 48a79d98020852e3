import {
  type Broker,
  type Delivery,
  type History,
  type HistoryPage,
  type HistoryRange,
  type JoinOrLeave,
  type NewPublication,
  NO_POSITION,
  type Publication,
  type Published
} from '../core/broker.js'
import { hasHistory } from '../core/channels.js'
import type { Clocks } from '../core/clocks.js'
import type { HistoryOptions } from '../core/options.js'
import { MemoryStream } from './memory-stream.js'
import { RecentResults } from './recent-results.js'

export interface MemoryParts extends Clocks {
  /** The name of a stream that is made anew. */
  readonly newEpoch: () => string
}

/** Publications and their history within one process. Everything is answered at once. */
export class MemoryEngine implements Broker, History {
  readonly #clocks: Clocks
  readonly #newEpoch: () => string
  readonly #streams = new Map<string, MemoryStream>()
  readonly #results = new RecentResults()
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
