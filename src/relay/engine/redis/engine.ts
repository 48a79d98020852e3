import { randomBytes } from 'node:crypto'
import {
  type Broker,
  type Delivery,
  EngineError,
  type History,
  type HistoryPage,
  type HistoryRange,
  type JoinOrLeave,
  type MaybePromise,
  type NewPublication,
  NO_POSITION,
  type Publication,
  type Published,
  type PublishTarget
} from '../../core/broker.js'
import { hasHistory } from '../../core/channels.js'
import type { HistoryOptions } from '../../core/options.js'
import { TimeSlice } from '../../core/time-slice.js'
import type { ChannelTarget, RedisBus } from './bus.js'
import { Moved } from './command-link.js'
import { IDEMPOTENT_RESULT_TTL_MS, MAX_AT_ONCE, PUBLISH_IDEMPOTENT, READ } from './scripts.js'

// How publications stand in Redis: a line of numbers, then the texts one after the other, just as they came. Nothing is
// escaped or written anew, and nothing of it is parsed but the numbers.
//
//   kept in the stream       time,delta,length of info,length of tags\n info tags data
//                            with a version behind the lengths where the publication has one
//   sent to subscribers     p offset,epoch,length,  and the same, once or more
//   joins and leaves        j info, l info

/** Null means none, and has a length of its own, because a text may be empty. */
const NONE = -1

/** What is kept of a publication; its offset is its place in the stream. */
export const encodeBody = ({ data, info, tags, delta, version }: NewPublication, time: number): string =>
  `${time},${delta ? 1 : 0},${info === null ? NONE : info.length},${tags === null ? NONE : tags.length}${
    version > 0 ? `,${version}` : ''
  }\n${info ?? ''}${tags ?? ''}${data}`

/** Without history there is nothing to be found it by. */
export const withoutPosition = (body: string): string => `p0,,${body.length},${body}`

export const encodeJoinOrLeave = (kind: JoinOrLeave, info: string): string => `${kind === 'join' ? 'j' : 'l'}${info}`

export type Message =
  | { readonly kind: 'publication'; readonly publication: Publication; readonly epoch: string }
  | { readonly kind: JoinOrLeave; readonly info: string }

/** None where it is not ours: anybody who may use the Redis can write anything. */
export const decodeMessages = (text: string): readonly Message[] => {
  if (text.startsWith('j{')) return [{ kind: 'join', info: text.slice(1) }]
  if (text.startsWith('l{')) return [{ kind: 'leave', info: text.slice(1) }]
  const messages: Message[] = []
  for (let at = 0; at < text.length; ) {
    HEAD.lastIndex = at
    const [head, offset, epoch = '', length] = HEAD.exec(text) ?? []
    if (head === undefined) return []
    const start = at + head.length
    at = start + Number(length)
    const publication = decodeBody(text.slice(start, at), Number(offset))
    if (publication === null || at > text.length) return []
    messages.push({ kind: 'publication', publication, epoch })
  }
  return messages
}

export const decodeBody = (text: string, offset: number): Publication | null => {
  const [head, time, delta, infoText, tagsText, version = '0'] = BODY_HEAD.exec(text) ?? []
  if (head === undefined) return null
  const infoLength = Number(infoText)
  const tagsLength = Number(tagsText)
  const infoEnd = head.length + Math.max(0, infoLength)
  const tagsEnd = infoEnd + Math.max(0, tagsLength)
  // Data is JSON, which has at least one character.
  if (text.length <= tagsEnd) return null
  return {
    data: text.slice(tagsEnd),
    offset,
    info: infoLength === NONE ? null : text.slice(head.length, infoEnd),
    tags: tagsLength === NONE ? null : text.slice(infoEnd, tagsEnd),
    time: Number(time),
    delta: delta === '1',
    version: Number(version)
  }
}

const HEAD = /p(\d{1,15}),([\w-]{0,64}),(\d{1,9}),/y
const BODY_HEAD = /^(\d{1,15}),([01]),(-1|\d{1,9}),(-1|\d{1,9})(?:,(\d{1,16}))?\n/

/** A place that nothing was ever published behind: who asks for made-up channels must not fill Redis with them. */
const UNUSED_MS = 10 * 60 * 1000

const WITHOUT_HISTORY: readonly string[] = ['', '', '', '']

/** Publications and their history in Redis, for any number of relays. */
export class RedisEngine implements Broker, History {
  readonly #bus: RedisBus
  readonly #nowMs: () => number
  /** Epochs begin so: no two relays make the same. */
  readonly #epochs = randomBytes(6).toString('base64url')
  #epochCount = 0

  constructor(bus: RedisBus, nowMs: () => number) {
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
      await this.#bus.publish(channel, withoutPosition(body))
      return { ...NO_POSITION, suppressedBy: null }
    }
    const keys = [name, resultKey]
    return publishedAt(
      await this.#bus.runScript(channel, PUBLISH_IDEMPOTENT, keys, ({ publishCommand, topicEnd }) => [
        withoutPosition(body),
        publishCommand,
        IDEMPOTENT_RESULT_TTL_MS,
        topicEnd
      ])
    )
  }

  async publishToMany(
    targets: readonly PublishTarget[],
    publication: NewPublication
  ): Promise<readonly (Published | EngineError)[]> {
    const { idempotencyKey, version, versionEpoch, skipHistory } = publication
    const body = { body: encodeBody(publication, this.#nowMs()), version, versionEpoch, idempotencyKey }
    const slice = new TimeSlice()
    const here: ChannelTarget[] = []
    for (const { channel, options } of targets) {
      if (slice.isOverAfterStep) await slice.next()
      const channelArguments = hasHistory(options) && !skipHistory ? this.#channelArguments(options) : WITHOUT_HISTORY
      here.push({ channel, name: this.#bus.names.channel(channel), channelArguments })
    }
    const outcomes: (Published | EngineError)[] = []
    for (const [index, answer] of (await this.#bus.publishToMany(here, body)).entries()) {
      if (slice.isOverAfterStep) await slice.next()
      if (!(answer instanceof EngineError)) outcomes.push(publishedAt(answer))
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
  ): Promise<Published | EngineError> {
    if (target === undefined) return moved
    try {
      return await this.publish(target.channel, publication, target.options)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
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

/** Of all bodies of a burst; a body that is longer goes alone. */
const MAX_CHARACTERS = 256 * 1024

export interface StoredPublication {
  readonly body: string
  readonly version: number
  readonly versionEpoch: string
  /** Where its result is found by others with the same idempotency key; '' for nowhere. */
  readonly resultKey: string
}

interface PublishBatch {
  readonly name: string
  /** What the script is told about the channel. */
  readonly channelArguments: readonly string[]
  readonly calls: Call[]
  characters: number
}

interface Call {
  readonly publication: StoredPublication
  readonly done: (answer: string) => void
  readonly failed: (error: Error) => void
}

/**
 * Gathers what is published to a channel within one turn of the event loop, so that a burst is one command to Redis and one
 * answer: finding its place, writing and answering cost both sides more than the publications do.
 */
export class PublishBatcher {
  readonly #run: (keys: readonly string[], args: readonly string[]) => Promise<unknown>
  readonly #sharedKeys: readonly string[]
  #bursts = new Map<string, PublishBatch>()

  /** `run` makes the publications of a burst, in their order, and answers for each. `sharedKeys` are for every script. */
  constructor(
    sharedKeys: readonly string[],
    run: (keys: readonly string[], args: readonly string[]) => Promise<unknown>
  ) {
    this.#sharedKeys = sharedKeys
    this.#run = run
  }

  add(name: string, channelArguments: readonly string[], publication: StoredPublication): Promise<string> {
    let burst = this.#bursts.get(name)
    if (burst !== undefined && isFull(burst, publication)) {
      this.#bursts.delete(name)
      this.#send(burst)
      burst = undefined
    }
    if (burst === undefined) {
      burst = { name, channelArguments, calls: [], characters: 0 }
      this.#bursts.set(name, burst)
    }
    const { calls } = burst
    burst.characters += publication.body.length
    return new Promise((done, failed) => {
      calls.push({ publication, done, failed })
    })
  }

  /** To be called at the end of the turn, and before anything is sent that must not overtake what was published. */
  leave(): void {
    if (this.#bursts.size === 0) return
    const bursts = this.#bursts
    // Not cleared: what a cleared map held is kept from the garbage collector by those that were cleared before.
    this.#bursts = new Map()
    for (const burst of bursts.values()) this.#send(burst)
  }

  #send({ name, channelArguments, calls }: PublishBatch): void {
    const keys = [`${name}place`, `${name}stream`, name, ...this.#sharedKeys]
    const args = [...channelArguments]
    for (const { publication } of calls) {
      const { body, version, versionEpoch, resultKey } = publication
      const isResultKept = resultKey !== ''
      if (isResultKept) keys.push(resultKey)
      args.push(body, String(body.length), String(version), versionEpoch, isResultKept ? String(keys.length) : '')
    }
    this.#run(keys, args).then(
      (answers) => {
        for (const [index, { done }] of calls.entries()) done((answers as readonly string[])[index] as string)
      },
      (error: Error) => {
        for (const { failed } of calls) failed(error)
      }
    )
  }
}

const isFull = ({ calls, characters }: PublishBatch, { body }: StoredPublication): boolean =>
  calls.length === MAX_AT_ONCE || characters + body.length > MAX_CHARACTERS

/** The list in pieces of so many. */
export const inBatches = <T>(all: readonly T[], size: number): (readonly T[])[] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, index) => all.slice(index * size, (index + 1) * size))
