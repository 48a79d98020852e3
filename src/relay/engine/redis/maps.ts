import {
  EngineError,
  type ExpiredKeys,
  type HistoryRange,
  type MapChanged,
  type MapRemoval,
  type Maps,
  type MapWrite,
  type RetainedPage,
  type StatePage,
  type StateRange
} from '../../core/engine.js'
import type { MapStorageOptions } from '../../core/options.js'
import { NO_POSITION, type Publication } from '../../core/publication.js'
import { MAX_ENTRIES_PER_READ, readInSteps } from '../whole-state.js'
import { type BatchedCall, chunks, SharedReads } from './batching.js'
import { listReply, SlotError } from './connection.js'
import { channelKey, mapKeys } from './keys.js'
import { MapIndexes } from './map-indexes.js'
import { decodeMapBody, decodeMapEntry, encodeMapBody, parseMapChanged } from './map-messages.js'
import { CHANGE_MAP, CLEAR_MAP, EXPIRE_MAPS, READ_ENTRY, READ_MAP, READ_MAP_STREAM } from './map-scripts.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'
import type { SlotTags } from './slot-tags.js'
import { decodeStream, rangeArguments } from './stream-range.js'

/** A map lives for at least this long after its last deadline, so that the expiry of its keys is delivered. */
const EXPIRY_GRACE_MS = 10_000
/** Indexes that one script looks at. */
const INDEXES_PER_SCRIPT = 1024
/** In a Redis Cluster one node at a time looks at the indexes of a server. Shorter than the interval of `expire`. */
const EXPIRY_LEASE_MS = '400'

const WRITE_KINDS = { if_new: 'n', if_exists: 'e' } as const

/** Maps of all nodes. map-scripts.ts describes the stored data. */
export class RedisMaps implements Maps {
  readonly #router: ShardRouter
  readonly #nowMs: () => number
  readonly #newEpoch: () => string
  readonly #indexes: MapIndexes
  readonly #pages = new SharedReads<StatePage>()
  readonly #streams = new SharedReads<RetainedPage>()
  #isExpiring = false

  constructor(router: ShardRouter, tags: SlotTags, nowMs: () => number, newEpoch: () => string) {
    this.#router = router
    this.#nowMs = nowMs
    this.#newEpoch = newEpoch
    this.#indexes = new MapIndexes(router, tags)
  }

  async write(channel: string, write: MapWrite, options: MapStorageOptions): Promise<MapChanged | 'full'> {
    const { key, keyMode, renews, version, versionEpoch } = write
    const body = encodeMapBody(write, this.#nowMs())
    const kind = keyMode === null ? 'w' : keyMode === 'if_new' && renews ? 'a' : WRITE_KINDS[keyMode]
    const args = [kind, key, body, String(body.length), String(version), versionEpoch]
    return parseMapChanged(await this.#change(channel, args, body.length, write.idempotencyKey, options))
  }

  async removeKey(channel: string, removal: MapRemoval, options: MapStorageOptions): Promise<MapChanged> {
    const args = ['r', removal.key, '', '', '', '']
    const changed = parseMapChanged(await this.#change(channel, args, 0, removal.idempotencyKey, options))
    if (changed === 'full') throw new EngineError('unexpected reply of Redis: a removal does not fill a map')
    return changed
  }

  readState(channel: string, range: StateRange, options: MapStorageOptions): Promise<StatePage> {
    return readInSteps(range, (part) => this.#readPage(channel, part, options))
  }

  async readKey(channel: string, key: string): Promise<Publication | null> {
    const reply = await this.#readEntry(channel, key)
    return typeof reply === 'string' ? decodeMapEntry(reply) : null
  }

  readStream(channel: string, range: HistoryRange, options: MapStorageOptions): Promise<RetainedPage> {
    if (options.mode === 'ephemeral') return Promise.resolve({ ...NO_POSITION, publications: [], oldest: 1 })
    return this.#streams.share(JSON.stringify([channel, range]), async () => {
      const reply = await this.#read(channel, READ_MAP_STREAM, options, rangeArguments(range))
      const [epoch, offset, entries, oldest] = listReply(reply)
      const publications = decodeStream(entries, decodeMapBody)
      return { epoch: String(epoch), offset: Number(offset), publications, oldest: Number(oldest) }
    })
  }

  async count(channel: string): Promise<number> {
    return Number(await this.#readEntry(channel, ''))
  }

  async clear(channel: string): Promise<void> {
    await this.#indexes.prepare()
    const keys = [...mapKeys(this.#router.keys.channel(channel)), this.#indexes.keyOf(channel)]
    await this.#router.withShard(channel, ({ commands }) => commands.runPublishScript(CLEAR_MAP, keys, []))
  }

  async expire(): Promise<ExpiredKeys> {
    if (this.#isExpiring) return { keys: 0, lagMs: 0 }
    this.#isExpiring = true
    try {
      await this.#indexes.prepare()
      const indexes = [...(await this.#indexes.byShard())]
      const outcomes = await Promise.allSettled(indexes.map(([shard, keys]) => this.#expireAt(shard, keys)))
      const expired = outcomes.map((outcome) => {
        if (outcome.status === 'rejected') throw outcome.reason
        return outcome.value
      })
      return {
        keys: expired.reduce((sum, { keys }) => sum + keys, 0),
        lagMs: Math.max(0, ...expired.map(({ lagMs }) => lagMs))
      }
    } finally {
      this.#isExpiring = false
    }
  }

  /** Sent together with the other changes of this map within the event loop turn. */
  async #change(
    channel: string,
    args: readonly string[],
    characters: number,
    idempotencyKey: string,
    options: MapStorageOptions
  ): Promise<string> {
    await this.#indexes.prepare()
    const topic = this.#router.keys.channel(channel)
    const resultKey = idempotencyKey === '' ? '' : channelKey(topic, 'result', idempotencyKey)
    const target = {
      topic,
      script: CHANGE_MAP,
      keys: () => [...mapKeys(topic), this.#indexes.keyOf(channel)],
      args: [this.#newEpoch(), optionsText(options)]
    }
    const call: BatchedCall = { args, characters, resultKey }
    return this.#router.withShard(channel, ({ commands }) => commands.runBatched(target, call))
  }

  #readPage(channel: string, { after, limit }: StateRange, options: MapStorageOptions): Promise<StatePage> {
    return this.#pages.share(JSON.stringify([channel, after, limit]), async () => {
      const args = [after, String(Math.min(limit, MAX_ENTRIES_PER_READ))]
      const [epoch, offset, next, entries] = listReply(await this.#read(channel, READ_MAP, options, args))
      return {
        epoch: String(epoch),
        offset: Number(offset),
        next: String(next),
        entries: listReply(entries)
          .map((entry) => decodeMapEntry(String(entry)))
          .filter((entry) => entry !== null)
      }
    })
  }

  #read(
    channel: string,
    script: typeof READ_MAP,
    options: MapStorageOptions,
    args: readonly string[]
  ): Promise<unknown> {
    const keys = [...mapKeys(this.#router.keys.channel(channel)), ...this.#router.ledgerKeys]
    return this.#router.runScript(channel, script, keys, ({ commands }) => [
      this.#newEpoch(),
      commands.runId,
      optionsText(options),
      ...args
    ])
  }

  #readEntry(channel: string, key: string): Promise<unknown> {
    const topic = this.#router.keys.channel(channel)
    const keys = [channelKey(topic, 'position'), channelKey(topic, 'entries')]
    return this.#router.runScript(channel, READ_ENTRY, keys, () => [key])
  }

  async #expireAt(shard: Shard, indexes: readonly string[]): Promise<ExpiredKeys> {
    let keys = 0
    let lagMs = 0
    let failure = ''
    for (const part of chunks(indexes, INDEXES_PER_SCRIPT)) {
      let lease = this.#router.isSlotted ? `${part[0]}:lease` : ''
      for (let isMore = true; isMore; lease = '') {
        const args = [this.#newEpoch(), lease, EXPIRY_LEASE_MS, ...part]
        const reply = await shard.commands.runPublishScript(EXPIRE_MAPS, [], args)
        const [removed, lag, more, cause] = listReply(reply)
        keys += Number(removed)
        lagMs = Math.max(lagMs, Number(lag))
        isMore = more === 1
        if (cause !== '') failure = String(cause)
      }
    }
    // The hash slot of an index has moved, or is being moved: tried again with the next call.
    if (SlotError.isScriptError(failure)) this.#indexes.forgetShards()
    else if (failure !== '') throw new EngineError(`keys of maps cannot expire: ${failure}`)
    return { keys, lagMs }
  }
}

/** As `openMap` of the scripts parses it. */
const optionsText = (options: MapStorageOptions): string => {
  const { mode, keyTtlMs, streamSize, streamTtlMs, metaTtlMs, maxKeys, deliversPrevious } = options
  const ttlMs = mode === 'persistent' ? 0 : Math.max(metaTtlMs, keyTtlMs + EXPIRY_GRACE_MS)
  const numbers = [keyTtlMs, streamSize, streamTtlMs, ttlMs, maxKeys].map(Math.ceil)
  return `${mode.charAt(0)},${numbers.join(',')},${deliversPrevious ? 1 : 0}`
}
