import { randomBytes } from 'node:crypto'
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
  type Published,
  type PublishTarget
} from '../../core/broker.js'
import { hasHistory } from '../../core/channels.js'
import { EngineFault } from '../../core/engine-fault.js'
import type { MaybePromise } from '../../core/maybe-promise.js'
import type { HistoryOptions } from '../../core/options.js'
import { Slices } from '../../core/slices.js'
import type { Bus, ChannelTarget } from './bus.js'
import { Moved } from './command-link.js'
import { decodeBody, decodeMessages, encodeBody, encodeJoinOrLeave, unplaced } from './envelope.js'
import { PUBLISH_ONCE, READ, RESULT_KNOWN_MS } from './scripts.js'

/** A place that nothing was ever published behind: who asks for made-up channels must not fill Redis with them. */
const UNUSED_MS = 10 * 60 * 1000

const WITHOUT_HISTORY: readonly string[] = ['', '', '', '']

/** Publications and their history in Redis, for any number of relays. */
export class RedisEngine implements Broker, History {
  readonly #bus: Bus
  readonly #nowMs: () => number
  /** Epochs begin so: no two relays make the same. */
  readonly #epochs = randomBytes(6).toString('base64url')
  #epochCount = 0

  constructor(bus: Bus, nowMs: () => number) {
    this.#bus = bus
    this.#nowMs = nowMs
  }

  start(delivery: Delivery): Promise<void> {
    this.#bus.listen({
      message: (channel, text) => {
        const messages = decodeMessages(text)
        for (const message of messages) {
          if (message.kind === 'publication') delivery.publication(channel, message.publication, message.epoch)
          else delivery.joinOrLeave(channel, message.kind, message.info)
        }
        return messages.length > 0
      },
      mayHaveMissed: (channel) => delivery.mayHaveMissed(channel),
      positions: () => delivery.positions()
    })
    return this.#bus.start()
  }

  subscribe(channel: string): MaybePromise<void> {
    return this.#bus.subscribe(channel)
  }

  unsubscribe(channel: string): void {
    this.#bus.unsubscribe(channel)
  }

  isDelivering(channel: string): boolean {
    return this.#bus.isDelivering(channel)
  }

  async publish(channel: string, publication: NewPublication, options: HistoryOptions): Promise<Published> {
    const { idempotencyKey, version, versionEpoch, skipHistory } = publication
    const body = encodeBody(publication, this.#nowMs())
    const name = this.#bus.names.channel(channel)
    const resultKey = idempotencyKey === '' ? '' : `${name}result:${idempotencyKey}`
    if (hasHistory(options) && !skipHistory) {
      const kept = { body, version, versionEpoch, resultKey }
      return publishedAt(await this.#bus.publishKept(channel, this.#channelArguments(options), kept))
    }
    if (idempotencyKey === '') {
      await this.#bus.publish(channel, unplaced(body))
      return { ...NO_POSITION, suppressedBy: null }
    }
    const keys = [name, resultKey]
    return publishedAt(
      await this.#bus.runScript(channel, PUBLISH_ONCE, keys, ({ publishCommand, topicEnd }) => [
        unplaced(body),
        publishCommand,
        RESULT_KNOWN_MS,
        topicEnd
      ])
    )
  }

  async publishToMany(
    targets: readonly PublishTarget[],
    publication: NewPublication
  ): Promise<readonly (Published | EngineFault)[]> {
    const { idempotencyKey, version, versionEpoch, skipHistory } = publication
    const body = { body: encodeBody(publication, this.#nowMs()), version, versionEpoch, idempotencyKey }
    const slices = new Slices()
    const here: ChannelTarget[] = []
    for (const { channel, options } of targets) {
      if (slices.isOverAfterStep) await slices.next()
      const channelArguments = hasHistory(options) && !skipHistory ? this.#channelArguments(options) : WITHOUT_HISTORY
      here.push({ channel, name: this.#bus.names.channel(channel), channelArguments })
    }
    const outcomes: (Published | EngineFault)[] = []
    for (const [index, answer] of (await this.#bus.publishToMany(here, body)).entries()) {
      if (slices.isOverAfterStep) await slices.next()
      if (!(answer instanceof EngineFault)) outcomes.push(publishedAt(answer))
      else
        outcomes.push(answer instanceof Moved ? await this.#publishMoved(targets[index], publication, answer) : answer)
    }
    return outcomes
  }

  async joinOrLeave(channel: string, kind: JoinOrLeave, info: string): Promise<void> {
    await this.#bus.publish(channel, encodeJoinOrLeave(kind, info))
  }

  async read(channel: string, range: HistoryRange, options: HistoryOptions): Promise<HistoryPage> {
    const name = this.#bus.names.channel(channel)
    const { historyMetaTtlMs } = options
    const unusedMs = historyMetaTtlMs > 0 ? Math.min(historyMetaTtlMs, UNUSED_MS) : UNUSED_MS
    const [epoch, offset, entries] = (await this.#bus.runScript(
      channel,
      READ,
      [`${name}place`, `${name}stream`, ...this.#bus.ledgerKeys],
      ({ commands }) => [
        this.#newEpoch(),
        commands.run,
        String(historyMetaTtlMs),
        String(unusedMs),
        ...rangeArguments(range)
      ]
    )) as [string, number, readonly Entry[]]
    return { epoch, offset, publications: entries.map(publicationOf).filter((each) => each !== null) }
  }

  /** The place stays: offsets go on from where they were. */
  async remove(channel: string): Promise<void> {
    await this.#bus.send(channel, 'del', [`${this.#bus.names.channel(channel)}stream`])
  }

  close(): void {
    this.#bus.close()
  }

  /** A channel that moved to another server meanwhile is published to by itself. */
  async #publishMoved(
    target: PublishTarget | undefined,
    publication: NewPublication,
    moved: Moved
  ): Promise<Published | EngineFault> {
    if (target === undefined) return moved
    try {
      return await this.publish(target.channel, publication, target.options)
    } catch (error) {
      if (!(error instanceof EngineFault)) throw error
      return error
    }
  }

  #channelArguments({ historySize, historyTtlMs, historyMetaTtlMs }: HistoryOptions): readonly string[] {
    const placeTtlMs = historyMetaTtlMs > 0 ? Math.max(historyMetaTtlMs, historyTtlMs) : 0
    return [this.#newEpoch(), String(historySize), String(historyTtlMs), String(placeTtlMs)]
  }

  #newEpoch(): string {
    return `${this.#epochs}${(++this.#epochCount).toString(36)}`
  }
}

type Entry = readonly [id: string, fields: readonly string[]]

/** Null for what nobody of us has written; it is missing then, which whoever recovers will notice. */
const publicationOf = ([id, [field, body = '']]: Entry): Publication | null =>
  field === 'd' ? decodeBody(body, Number.parseInt(id, 10)) : null

/** Command, from, to, how many. An offset alone stands for all entries that begin with it, of which there is one. */
const rangeArguments = ({ since, limit, reverse }: HistoryRange): readonly string[] => {
  const count = limit < 0 ? '' : String(limit)
  if (!reverse) return ['XRANGE', since === null ? '-' : String(since.offset + 1), '+', count]
  // Nothing is before the first.
  if (since?.offset === 0) return ['XREVRANGE', '+', '-', '0']
  return ['XREVRANGE', since === null ? '+' : String(since.offset - 1), '-', count]
}

const SUPPRESSED = { p: null, i: 'idempotency', v: 'version' } as const

/** `p42,epoch`, as the scripts answer. */
const publishedAt = (answer: unknown): Published => {
  const text = String(answer)
  const comma = text.indexOf(',')
  const suppressedBy = SUPPRESSED[text[0] as keyof typeof SUPPRESSED]
  return { offset: Number(text.slice(1, comma)), epoch: text.slice(comma + 1), suppressedBy }
}
