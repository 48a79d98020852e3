import { monotonicMs } from '../../../shared/monotonic.js'
import { hasHistory } from '../../core/channel-names.js'
import {
  type Broker,
  type Delivery,
  EngineError,
  type History,
  type HistoryRange,
  type JoinOrLeave,
  type PublishTarget,
  type RetainedPage,
  UNUSED_POSITION_TTL_MS
} from '../../core/engine.js'
import type { HistoryOptions } from '../../core/options.js'
import { type NewPublication, NO_POSITION, type Published } from '../../core/publication.js'
import { TimeSlice } from '../../core/time-slice.js'
import { type BatchTarget, SharedReads } from './batching.js'
import {
  decodeBody,
  decodeMessages,
  encodeBody,
  encodeJoinOrLeave,
  encodeWithoutPosition,
  parsePublished
} from './channel-messages.js'
import { listReply, SlotError } from './connection.js'
import { CONTROL, channelKey } from './keys.js'
import { IDEMPOTENT_RESULT_TTL_MS, PUBLISH_IDEMPOTENT, PUBLISH_WITH_HISTORY, READ_HISTORY } from './publish-scripts.js'
import type { ChannelTarget, ShardRouter } from './shard-router.js'
import type { SlotTags } from './slot-tags.js'
import { decodeStream, rangeArguments } from './stream-range.js'

/** As many as the arguments of a channel with history. */
const NO_HISTORY_ARGUMENTS: readonly string[] = ['', '', '', '', '']

// When a Redis server restarts, or its connection is lost:
//
// 1. `Shard` reports that it is not ready. Commands and new subscriptions fail with `EngineError`, which clients and publishers
//    receive as error 100; clients stay connected, and `/health` is 503.
// 2. `CommandConnection` reconnects. If the server was restarted, all nodes determine with `DataLossDetector` whether it has all
//    their writes. If not, a new generation begins, and every stream begins a new epoch with its next use (publish-scripts.ts). A Redis
//    Cluster has no detector: every new run_id is a generation there.
// 3. `SubscriberConnection` subscribes to all topics again and calls `mayHaveMissed` for each channel. The core then compares the
//    delivered positions with the history; clients that missed publications resubscribe and recover.
// 4. `RedisPresence` and `RedisUserConnections` write their entries again. `RedisNodeCluster` announces this node and reads the
//    commands that it missed from the log.

/** Publications and history in Redis, shared by any number of relay nodes. */
export class RedisEngine implements Broker, History {
  readonly #router: ShardRouter
  readonly #tags: SlotTags
  readonly #nowMs: () => number
  readonly #newEpoch: () => string
  readonly #reads = new SharedReads<RetainedPage>()

  constructor(router: ShardRouter, tags: SlotTags, nowMs: () => number, newEpoch: () => string) {
    this.#router = router
    this.#tags = tags
    this.#nowMs = nowMs
    this.#newEpoch = newEpoch
  }

  async start(delivery: Delivery): Promise<void> {
    this.#router.onMessages({
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
    await this.#router.start()
    await this.#tags.prepare()
  }

  subscribe(channel: string): Promise<void> {
    return this.#router.subscribe(channel)
  }

  async unsubscribe(channel: string): Promise<void> {
    this.#router.unsubscribe(channel)
  }

  isDelivering(channel: string): boolean {
    return this.#router.isDelivering(channel)
  }

  async publish(channel: string, publication: NewPublication, options: HistoryOptions): Promise<Published> {
    const { idempotencyKey, version, versionEpoch, skipHistory } = publication
    const body = encodeBody(publication, this.#nowMs())
    const topic = this.#router.keys.channel(channel)
    const resultKey = idempotencyKey === '' ? '' : channelKey(topic, 'result', idempotencyKey)
    if (hasHistory(options) && !skipHistory) {
      const unusedKey = this.#unusedKey(channel, options)
      const target: BatchTarget = {
        topic,
        script: PUBLISH_WITH_HISTORY,
        keys: () => [channelKey(topic, 'position'), channelKey(topic, 'stream'), topic, unusedKey],
        args: this.#historyArguments(options)
      }
      const args = [body, String(body.length), String(version), versionEpoch]
      const call = { args, characters: body.length, resultKey }
      return parsePublished(await this.#router.withShard(channel, ({ commands }) => commands.runBatched(target, call)))
    }
    if (idempotencyKey === '') {
      await this.#router.publish(channel, encodeWithoutPosition(body))
      return { ...NO_POSITION, suppressedBy: null }
    }
    const reply = await this.#router.runScript(
      channel,
      PUBLISH_IDEMPOTENT,
      [topic, resultKey],
      ({ publishCommand, topicSuffix }) => [
        encodeWithoutPosition(body),
        publishCommand,
        IDEMPOTENT_RESULT_TTL_MS,
        topicSuffix
      ]
    )
    return parsePublished(String(reply))
  }

  async publishToMany(
    targets: readonly PublishTarget[],
    publication: NewPublication
  ): Promise<readonly (Published | EngineError)[]> {
    const { idempotencyKey, version, versionEpoch, skipHistory } = publication
    const body = { body: encodeBody(publication, this.#nowMs()), version, versionEpoch, idempotencyKey }
    const slice = new TimeSlice(monotonicMs)
    const channelTargets: ChannelTarget[] = []
    for (const { channel, options } of targets) {
      if (slice.isOverAfterStep) await slice.next()
      const isStored = hasHistory(options) && !skipHistory
      const historyArguments = isStored
        ? [this.#unusedKey(channel, options), ...this.#historyArguments(options)]
        : NO_HISTORY_ARGUMENTS
      channelTargets.push({ channel, topic: this.#router.keys.channel(channel), historyArguments })
    }
    const outcomes: (Published | EngineError)[] = []
    for (const [index, outcome] of (await this.#router.publishToMany(channelTargets, body)).entries()) {
      if (slice.isOverAfterStep) await slice.next()
      if (!(outcome instanceof EngineError)) outcomes.push(parsePublished(outcome))
      else if (outcome instanceof SlotError)
        outcomes.push(await this.#publishAgain(targets[index], publication, outcome))
      else outcomes.push(outcome)
    }
    return outcomes
  }

  async joinOrLeave(channel: string, kind: JoinOrLeave, info: string): Promise<void> {
    await this.#router.publish(channel, encodeJoinOrLeave(kind, info))
  }

  read(channel: string, range: HistoryRange, options: HistoryOptions): Promise<RetainedPage> {
    const key = JSON.stringify([channel, range, options.historyMetaTtlMs, options.historyTtlMs])
    return this.#reads.share(key, () => this.#readNow(channel, range, options))
  }

  async #readNow(channel: string, range: HistoryRange, options: HistoryOptions): Promise<RetainedPage> {
    const topic = this.#router.keys.channel(channel)
    const { historyMetaTtlMs, historyTtlMs } = options
    const unusedTtlMs = Math.min(historyMetaTtlMs, UNUSED_POSITION_TTL_MS)
    const reply = await this.#router.runScript(
      channel,
      READ_HISTORY,
      [
        channelKey(topic, 'position'),
        channelKey(topic, 'stream'),
        this.#unusedKey(channel, options),
        ...this.#router.ledgerKeys
      ],
      ({ commands }) => [
        this.#newEpoch(),
        commands.runId,
        String(historyMetaTtlMs),
        String(unusedTtlMs),
        ...rangeArguments(range),
        String(historyTtlMs),
        range.isSubscribed ? '1' : ''
      ]
    )
    const [epoch, offset, entries, oldest] = listReply(reply)
    const publications = decodeStream(entries, decodeBody)
    return { epoch: String(epoch), offset: Number(offset), publications, oldest: Number(oldest) }
  }

  /** Deletes the publications. The position stays, so that offsets continue. */
  async remove(channel: string): Promise<void> {
    await this.#router.send(channel, 'del', [channelKey(this.#router.keys.channel(channel), 'stream')])
  }

  async close(): Promise<void> {
    this.#router.close()
  }

  /** Publishes on its own to a channel whose hash slot moved during a broadcast. */
  async #publishAgain(
    target: PublishTarget | undefined,
    publication: NewPublication,
    moved: SlotError
  ): Promise<Published | EngineError> {
    if (target === undefined) return moved
    try {
      return await this.publish(target.channel, publication, target.options)
    } catch (error) {
      if (!(error instanceof EngineError)) throw error
      return error
    }
  }

  /** The position that the channel shares with others while it has none. */
  #unusedKey(channel: string, { historyMetaTtlMs }: HistoryOptions): string {
    return this.#router.keys.control(CONTROL.unusedEpoch(historyMetaTtlMs), this.#tags.of(channel))
  }

  #historyArguments({ historySize, historyTtlMs, historyMetaTtlMs }: HistoryOptions): readonly string[] {
    return [this.#newEpoch(), String(historySize), String(historyTtlMs), String(historyMetaTtlMs)]
  }
}
