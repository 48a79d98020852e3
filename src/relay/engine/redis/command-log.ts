import { randomUUID } from 'node:crypto'
import type { RedisBus } from './bus.js'
import { LOG_COMMAND, READ_COMMANDS } from './scripts.js'
import type { Shard } from './shard.js'

/** How much is kept for nodes that are away: far more than an operator does within an hour. */
const MAX_COMMANDS = 10_000
const MAX_BYTES = 16 * 1024 * 1024
const STREAM_TTL_MS = 24 * 60 * 60 * 1000
/** Longer than that of the stream: a node that comes back to an empty stream finds by the number that it has missed something. */
const LOG_TTL_MS = 30 * STREAM_TTL_MS
const READ_AT_ONCE = 500

const LOG = 'commands'
const STREAM = 'commands:stream'
const NODES = 'nodes'

export interface LogReading {
  /** In their order; some may have been applied already. */
  readonly commands: readonly string[]
  /** Those whose lease has not ended, this one included. */
  readonly nodes: readonly string[]
  /** Commands were dropped that this node has not read. */
  readonly hasGap: boolean
  /** The log is not the one of before: Redis was emptied, or came back with an older file. */
  readonly isReplaced: boolean
  /** There are more to be read. */
  readonly hasMore: boolean
}

/** How far a log has been read. */
interface Cursor {
  /** Its last number when this node started: what is before concerns no client of this node. */
  readonly startedAt: number
  number: number
}

/**
 * Commands to all nodes, kept on every service shard, and the leases of the nodes. A node reads the log once a second over the
 * connection for commands: one that hears no messages, or was frozen for longer than its lease, still applies every command.
 */
export class CommandLog {
  readonly #bus: RedisBus
  readonly #topic: string
  readonly #leaseMs: number
  #node = ''
  /** By id of the log. */
  readonly #cursors = new Map<string, Cursor>()
  readonly #idAt = new Map<Shard, string>()
  /** By the clock of Redis, for a log that was not there at the start. */
  #startedAtMs = 0

  constructor(bus: RedisBus, topic: string, leaseMs: number) {
    this.#bus = bus
    this.#topic = topic
    this.#leaseMs = leaseMs
  }

  get shards(): readonly Shard[] {
    return this.#bus.serviceShards
  }

  async start(node: string): Promise<void> {
    this.#node = node
    for (const shard of this.shards) {
      const { now, id, top } = await this.#read(shard)
      this.#startedAtMs = Math.max(this.#startedAtMs, now)
      this.#idAt.set(shard, id)
      if (id !== '') this.#cursors.set(id, { startedAt: top, number: top })
    }
  }

  /** Sends the command to all nodes that listen, and keeps it for the others; answers with the live nodes. */
  async append(shard: Shard, command: string): Promise<readonly string[]> {
    const { publishCommand, topicEnd } = shard
    const limits = [MAX_COMMANDS, MAX_BYTES, STREAM_TTL_MS, LOG_TTL_MS].map(String)
    const args = [command, randomUUID(), publishCommand, topicEnd, ...limits]
    const nodes = await this.#bus.runServiceScript(shard, LOG_COMMAND, [LOG, STREAM, NODES, this.#topic], args)
    return nodes as readonly string[]
  }

  /** Renews the lease, and reads what has been appended since the last time. */
  async read(shard: Shard): Promise<LogReading> {
    const { id, top, from, entries, nodes } = await this.#read(shard)
    const known = this.#idAt.get(shard)
    const cursor = this.#cursors.get(id)
    const isReplaced = (!!known && id !== known) || (cursor !== undefined && from < cursor.number)
    // A log that was begun since the last reading is to be read from its first command on.
    const isFollowed = !isReplaced && (cursor !== undefined || known === '')
    const first = entries[0]?.number ?? top + 1
    const last = entries.length < READ_AT_ONCE ? top : (entries.at(-1)?.number ?? top)
    this.#idAt.set(shard, id)
    if (known !== undefined && known !== id) this.#cursors.delete(known)
    if (id !== '') this.#cursors.set(id, { startedAt: cursor?.startedAt ?? 0, number: last })
    const isOurs = ({ number, time }: Entry): boolean =>
      cursor === undefined ? time >= this.#startedAtMs : number > cursor.startedAt
    return {
      commands: entries.filter(isOurs).map(({ command }) => command),
      nodes,
      hasGap: isFollowed && first > from + 1,
      isReplaced,
      hasMore: last < top
    }
  }

  /** This node is gone: nobody waits for it. */
  async leave(): Promise<void> {
    const key = this.#bus.names.service(NODES)
    await Promise.all(this.shards.map(({ commands }) => commands.send('zrem', [key, this.#node])))
  }

  async #read(shard: Shard): Promise<Reading> {
    const known = [...this.#cursors].flatMap(([id, { number }]) => [id, String(number)])
    const args = [this.#node, String(this.#leaseMs), String(READ_AT_ONCE), ...known]
    const answer = await this.#bus.runServiceScript(shard, READ_COMMANDS, [LOG, STREAM, NODES], args)
    const [now, id, top, from, entries, nodes] = answer as RawReading
    return { now, id, top, from, entries: entries.map(entryOf), nodes }
  }
}

interface Entry {
  readonly number: number
  readonly command: string
  readonly time: number
}

interface Reading {
  readonly now: number
  readonly id: string
  readonly top: number
  /** The entries follow this number. */
  readonly from: number
  readonly entries: readonly Entry[]
  readonly nodes: readonly string[]
}

type RawEntry = readonly [id: string, fields: readonly string[]]
type RawReading = [number, string, number, number, readonly RawEntry[], readonly string[]]

const entryOf = ([id, [, command = '', , time]]: RawEntry): Entry => ({
  number: Number.parseInt(id, 10),
  command,
  time: Number(time)
})

/** More than the command log keeps, so that a log that is read again repeats nothing. */
const MAX_KNOWN = 20_000

/** The commands that this node has applied. Each arrives as a message and in the log, and again if its answer was lost. */
export class AppliedCommands<Result> {
  readonly #results = new Map<string, Promise<Result | null>>()

  has(id: string): boolean {
    return this.#results.has(id)
  }

  /** Applies it once, however often it is called. Null means that it failed: the next call tries again. */
  once(id: string, apply: () => Promise<Result | null>): Promise<Result | null> {
    const known = this.#results.get(id)
    if (known !== undefined) return known
    const applying = apply().then((result) => {
      if (result === null) this.#results.delete(id)
      return result
    })
    this.#results.set(id, applying)
    const [oldest] = this.#results.keys()
    if (this.#results.size > MAX_KNOWN && oldest !== undefined) this.#results.delete(oldest)
    return applying
  }
}
