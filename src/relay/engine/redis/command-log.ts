import { randomUUID } from 'node:crypto'
import { BoundedMap } from '../../../shared/bounded-map.js'
import { listReply, stringListReply } from './connection.js'
import { CONTROL } from './keys.js'
import { APPEND_COMMAND, READ_COMMANDS } from './node-scripts.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'

/** Enough for nodes that were disconnected for an hour. */
const MAX_COMMANDS = 10_000
const MAX_BYTES = 16 * 1024 * 1024
const STREAM_TTL_MS = 24 * 60 * 60 * 1000
/** Longer than that of the stream: a node that finds an empty stream can tell from the number that it missed commands. */
const LOG_TTL_MS = 30 * STREAM_TTL_MS
const COMMANDS_PER_READ = 500

const LOG_KEYS = [CONTROL.commandLog, CONTROL.commandStream, CONTROL.nodes]

export interface CommandBatch {
  /** In order. Some may have been applied already. */
  readonly commands: readonly string[]
  /** The nodes with a lease, including this one. */
  readonly nodes: readonly string[]
  /** Commands that this node has not read were dropped from the log. */
  readonly hasGap: boolean
  /** The log is not the one of the last read: Redis was emptied, or restarted with an older file. */
  readonly isReplaced: boolean
  readonly hasMore: boolean
}

/** How far a log has been read. */
interface Cursor {
  /** The last number when this node started. Earlier commands concern no client of this node. */
  readonly startedAt: number
  number: number
}

/**
 * The commands to all nodes, stored on every control shard, and the leases of the nodes. Each node reads the log once a second
 * over its command connection, so that a node without subscriptions, or suspended for longer than its lease, applies every command.
 */
export class CommandLog {
  readonly #router: ShardRouter
  readonly #leaseMs: number
  #node = ''
  /** By id of the log. */
  readonly #cursors = new Map<string, Cursor>()
  readonly #logIds = new Map<Shard, string>()
  /** Time of the Redis server, for a log that did not exist at start. */
  #startedAtMs = 0

  constructor(router: ShardRouter, leaseMs: number) {
    this.#router = router
    this.#leaseMs = leaseMs
  }

  get shards(): readonly Shard[] {
    return this.#router.controlShards
  }

  async start(node: string): Promise<void> {
    this.#node = node
    for (const shard of this.shards) {
      const { now, logId, lastNumber } = await this.#read(shard)
      this.#startedAtMs = Math.max(this.#startedAtMs, now)
      this.#logIds.set(shard, logId)
      if (logId !== '') this.#cursors.set(logId, { startedAt: lastNumber, number: lastNumber })
    }
  }

  /** Publishes the command to the subscribed nodes and stores it for the others. Returns the nodes with a lease. */
  async append(shard: Shard, command: string): Promise<readonly string[]> {
    const { publishCommand, topicSuffix } = shard
    const limits = [MAX_COMMANDS, MAX_BYTES, STREAM_TTL_MS, LOG_TTL_MS].map(String)
    const args = [command, randomUUID(), publishCommand, topicSuffix, ...limits]
    const names = [...LOG_KEYS, CONTROL.allNodesTopic]
    return stringListReply(await this.#router.runControlScript(shard, APPEND_COMMAND, names, args))
  }

  /** Renews the lease and reads the commands appended since the last read. */
  async read(shard: Shard): Promise<CommandBatch> {
    const { logId, lastNumber, after, entries, nodes } = await this.#read(shard)
    const knownId = this.#logIds.get(shard)
    const cursor = this.#cursors.get(logId)
    const isReplaced = (!!knownId && logId !== knownId) || (cursor !== undefined && after < cursor.number)
    // A log that was created since the last read is read from its first command.
    const isContinued = !isReplaced && (cursor !== undefined || knownId === '')
    const first = entries[0]?.number ?? lastNumber + 1
    const last = entries.length < COMMANDS_PER_READ ? lastNumber : (entries.at(-1)?.number ?? lastNumber)
    this.#logIds.set(shard, logId)
    if (knownId !== undefined && knownId !== logId) this.#cursors.delete(knownId)
    if (logId !== '') this.#cursors.set(logId, { startedAt: cursor?.startedAt ?? 0, number: last })
    const isAfterStart = ({ number, time }: LogEntry): boolean =>
      cursor === undefined ? time >= this.#startedAtMs : number > cursor.startedAt
    return {
      commands: entries.filter(isAfterStart).map(({ command }) => command),
      nodes,
      hasGap: isContinued && first > after + 1,
      isReplaced,
      hasMore: last < lastNumber
    }
  }

  /** Whether a control shard has a lease of the node. Nodes that read the log remove expired leases. */
  async hasLease(node: string): Promise<boolean> {
    const key = this.#router.keys.control(CONTROL.nodes)
    const scores = await Promise.all(this.shards.map(({ commands }) => commands.send('zscore', [key, node])))
    return scores.some((score) => score !== null)
  }

  /** Ends the lease of this node, so that no command waits for it. */
  async leave(): Promise<void> {
    const key = this.#router.keys.control(CONTROL.nodes)
    await Promise.all(this.shards.map(({ commands }) => commands.send('zrem', [key, this.#node])))
  }

  async #read(shard: Shard): Promise<LogReply> {
    const cursors = [...this.#cursors].flatMap(([id, { number }]) => [id, String(number)])
    const args = [this.#node, String(this.#leaseMs), String(COMMANDS_PER_READ), ...cursors]
    const reply = await this.#router.runControlScript(shard, READ_COMMANDS, LOG_KEYS, args)
    const [now, logId, lastNumber, after, entries, nodes] = listReply(reply)
    return {
      now: Number(now),
      logId: String(logId),
      lastNumber: Number(lastNumber),
      after: Number(after),
      entries: listReply(entries).map(parseEntry),
      nodes: stringListReply(nodes)
    }
  }
}

interface LogEntry {
  readonly number: number
  readonly command: string
  readonly time: number
}

interface LogReply {
  readonly now: number
  readonly logId: string
  readonly lastNumber: number
  /** The entries start after this number. */
  readonly after: number
  readonly entries: readonly LogEntry[]
  readonly nodes: readonly string[]
}

/** A stream entry is its id and its fields: `c`, the command, `t`, the time. */
const parseEntry = (entry: unknown): LogEntry => {
  const [id, fields] = listReply(entry)
  const [, command = '', , time] = stringListReply(fields)
  return { number: Number.parseInt(String(id), 10), command, time: Number(time) }
}

/** More than the command log stores, so that reading a log again applies nothing twice. */
const MIN_REMEMBERED = 2 * MAX_COMMANDS

/** The commands that this node has applied. Each arrives as a message and in the log, and again if its reply was lost. */
export class AppliedCommands<Result> {
  readonly #results = new BoundedMap<string, Promise<Result | null>>(MIN_REMEMBERED)

  has(id: string): boolean {
    return this.#results.has(id)
  }

  /** Applies a command once, however often it is called. Null means that it failed: the next call tries again. */
  once(id: string, apply: () => Promise<Result | null>): Promise<Result | null> {
    const known = this.#results.get(id)
    if (known !== undefined) return known
    const applying = apply().then((result) => {
      if (result === null) this.#results.delete(id)
      return result
    })
    this.#results.set(id, applying)
    return applying
  }
}
