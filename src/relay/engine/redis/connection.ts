import { Command, Redis } from 'ioredis'
import { messageOf } from '../../../shared/error-message.js'
import { addressName, connectionOptions, type RedisAddress } from '../../../shared/redis-address.js'
import { EngineError } from '../../core/engine.js'

/** A server that has not replied for this long counts as down: its pending commands fail and the connection is opened again. */
const REPLY_TIMEOUT_MS = 2_000
const CONNECT_TIMEOUT_MS = 2_000
const RETRY_MS = 100
const MAX_RETRY_MS = 1_000

/** A connection without ioredis' offline queue, resending and resubscribing: the engine handles connection loss itself. */
export const openConnection = (address: RedisAddress, purpose: string): Redis =>
  new Redis({
    enableReadyCheck: false,
    ...connectionOptions(address),
    connectionName: `gatehouse-relay-${purpose}`,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: REPLY_TIMEOUT_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    // With jitter, so that many relays do not reconnect to a restarted Redis at the same moment.
    retryStrategy: (attempt) => Math.min(attempt * RETRY_MS, MAX_RETRY_MS) * (0.5 + Math.random() / 2)
  })

export const sendCommand = async (redis: Redis, name: string, args: readonly string[]): Promise<unknown> =>
  redis.sendCommand(new Command(name, [...args], { replyEncoding: 'utf8' }))

/** Contains neither the password nor the command. */
export const errorText = (address: RedisAddress, error: unknown): string =>
  `Redis at ${addressName(address)}: ${messageOf(error)}`

/** The connection to the server is down. */
export const disconnectedError = (address: RedisAddress): EngineError =>
  new EngineError(`Redis at ${addressName(address)} is away`)

/** Redis Cluster rejected a command because of its hash slot. The command had no effect and can be sent again. */
export class SlotError extends EngineError {
  override readonly name = 'SlotError'
  /**
   * moved: another server has the slot, so the slot table must be read again. importing: the keys are already at the server
   * `target`, which accepts the command after ASKING. busy: some of the keys are at either server, until the migration ends.
   */
  readonly reason: 'moved' | 'importing' | 'busy'
  /** As host:port. */
  readonly target: string

  constructor(message: string, reply: string) {
    super(message)
    const [word, , target = ''] = reply.split(' ')
    this.reason = word === 'ASK' ? 'importing' : word === 'TRYAGAIN' ? 'busy' : 'moved'
    this.target = this.reason === 'importing' ? target : ''
  }

  static isReply(reply: string): boolean {
    return /^(MOVED|ASK|CLUSTERDOWN|TRYAGAIN) ?/.test(reply)
  }

  /** Whether an error within a script is about a key whose hash slot is at another server or being moved. */
  static isScriptError(message: string): boolean {
    return /non local key|cluster is down|\b(?:MOVED|ASK|CLUSTERDOWN|TRYAGAIN) /.test(message)
  }
}

/** The part of the INFO reply that the engine needs. */
export interface ServerInfo {
  /** Redis' `run_id`: a new one each time the server starts. */
  readonly runId: string
  /** Redis' `master_replid`: a new one also when a replica becomes the master, which keeps its `run_id`. */
  readonly replicationId: string
  readonly isRedisCluster: boolean
  /** Why the engine cannot use the server; '' if it can. */
  readonly unusableReason: string
}

export const parseServerInfo = (text: string): ServerInfo => {
  const fields = new Map(
    text.split('\r\n').map((line): [string, string] => {
      const [name = '', value = ''] = line.split(':', 2)
      return [name, value]
    })
  )
  return {
    runId: fields.get('run_id') ?? '',
    replicationId: fields.get('master_replid') ?? '',
    isRedisCluster: fields.get('redis_mode') === 'cluster' || fields.get('cluster_enabled') === '1',
    unusableReason:
      fields.get('loading') === '1'
        ? 'it is still loading its data'
        : fields.get('role') === 'slave'
          ? 'it is a replica, which takes no publications'
          : ''
  }
}

/** A reply that is a list. Throws for any other reply, which a server that is not Redis might send. */
export const listReply = (reply: unknown): readonly unknown[] => {
  if (!Array.isArray(reply)) throw new EngineError(`unexpected reply of Redis: ${typeof reply}`)
  return reply
}

export const stringListReply = (reply: unknown): readonly string[] => listReply(reply).map(String)
