import type { Redis } from 'ioredis'
import { toError } from '../../../shared/error-message.js'
import type { RedisAddress } from '../../../shared/redis-address.js'
import { reconnect, reconnectToMaster } from '../../../shared/sentinel-watch.js'
import { EngineError } from '../../core/engine.js'
import { type BatchedCall, type BatchTarget, ScriptBatcher, WriteBatcher } from './batching.js'
import {
  disconnectedError,
  errorText,
  openConnection,
  parseServerInfo,
  SlotError,
  sendCommand,
  stringListReply
} from './connection.js'
import type { DataLossDetector, RunScript } from './data-loss-detector.js'
import type { Script } from './lua-script.js'
import { IDEMPOTENT_RESULT_TTL_MS } from './publish-scripts.js'
import { SCRIPTS } from './scripts.js'

export interface CommandConnectionDependencies {
  readonly publishCommand: string
  readonly topicSuffix: string
  /** Null in a Redis Cluster. */
  readonly lossDetector: DataLossDetector | null
  /** The connection can be used. `isNewGeneration`: data was lost, so all streams begin a new epoch. */
  opened(isNewGeneration: boolean): void
  lost(cause: Error): void
  /** Redis replied with an error. */
  errorReply(cause: Error): void
}

/** A server's connection for commands. It opens once the server accepts writes and has loaded the scripts. */
export class CommandConnection {
  readonly #address: RedisAddress
  readonly #dependencies: CommandConnectionDependencies
  readonly #redis: Redis
  readonly #writes: WriteBatcher
  readonly #batches: ScriptBatcher
  #isOpen = false
  #isAsking = false
  #runId = ''
  /** Number of connections that have been closed, to recognise replies to an earlier one. */
  #closedConnections = 0
  readonly #runScript: RunScript = (script, keys, args) => this.runScript(script, keys, args)
  #lastError: Error | null = null

  constructor(address: RedisAddress, dependencies: CommandConnectionDependencies) {
    this.#address = address
    this.#dependencies = dependencies
    this.#redis = openConnection(address, 'commands')
    const { lossDetector } = dependencies
    this.#batches = new ScriptBatcher(
      lossDetector === null ? [] : [lossDetector.ledgerKey],
      async (script, keys, args) => stringListReply(await this.runPublishScript(script, keys, args))
    )
    this.#writes = new WriteBatcher(this.#redis, () => this.#batches.flush())
    this.#redis.on('ready', () => void this.#open())
    this.#redis.on('close', () => this.#close())
    // Emitted at every attempt to connect.
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error
      // While all sentinels are unreachable there is no connection that could close.
      if (!this.#isOpen) dependencies.lost(error)
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** `run_id` of the server. It changes when the server restarts or a replica takes over. */
  get runId(): string {
    return this.#runId
  }

  async runScript(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    try {
      return await this.send('evalsha', [script.sha, String(keys.length), ...keys, ...args])
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('NOSCRIPT')) throw error
      // SCRIPT FLUSH removed it from the cache of the server.
      return this.send('eval', [script.text, String(keys.length), ...keys, ...args])
    }
  }

  /** Adds the seven arguments that every publish script begins with. */
  runPublishScript(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    // Writes are numbered in the order in which they are sent.
    this.#batches.flush()
    const { lossDetector, publishCommand, topicSuffix } = this.#dependencies
    const ledgerKey = lossDetector?.ledgerKey ?? ''
    const all = [ledgerKey, this.#runId, publishCommand, topicSuffix, IDEMPOTENT_RESULT_TTL_MS, ...args]
    return lossDetector === null
      ? this.runScript(script, keys, ['', '', ...all])
      : lossDetector.runWrite(this.#runScript, script, keys, all)
  }

  /** Publishes a message to `topic`, to which this node is subscribed. Resolves when Redis has accepted it. */
  heartbeat(topic: string): Promise<unknown> {
    this.#batches.flush()
    const { lossDetector, publishCommand, topicSuffix } = this.#dependencies
    const publish = (): Promise<unknown> => this.send(publishCommand, [topic + topicSuffix, ''])
    // A Redis that is out of memory rejects the write, but not the message.
    return lossDetector === null
      ? publish()
      : lossDetector.heartbeat(this.#runScript, topic, publishCommand, topicSuffix).catch(publish)
  }

  /** Runs a publish script. The calls of one event loop turn for the same channel are sent together. */
  runBatched(target: BatchTarget, call: BatchedCall): Promise<string> {
    if (!this.#isOpen) return Promise.reject(disconnectedError(this.#address))
    this.#writes.cork()
    return this.#batches.add(target, call)
  }

  send(name: string, args: readonly string[]): Promise<unknown> {
    if (!this.#isOpen) return Promise.reject(disconnectedError(this.#address))
    // Commands must not overtake earlier publications.
    this.#batches.flush()
    return this.#send(name, args).catch((error: Error) => {
      throw this.#convertError(error)
    })
  }

  /**
   * Sends ASKING before each command that `work` sends within this turn of the event loop, so that a server of a Redis Cluster
   * accepts commands for a hash slot that is being moved to it.
   */
  asking<T>(work: () => Promise<T>): Promise<T> {
    this.#batches.flush()
    this.#isAsking = true
    try {
      const result = work()
      this.#batches.flush()
      return result
    } finally {
      this.#isAsking = false
    }
  }

  reconnect(): void {
    reconnect(this.#redis)
  }

  /** Sentinel reports this server as the master. */
  useMaster(host: string, port: number): void {
    reconnectToMaster(this.#redis, host, port)
  }

  close(): void {
    const { lossDetector } = this.#dependencies
    // Removes this node from the ledger, so that other nodes do not wait for it after a restart of the server.
    if (this.#isOpen && lossDetector !== null) this.#send('hdel', lossDetector.ownFields).catch(() => undefined)
    this.#redis.disconnect()
  }

  #send(name: string, args: readonly string[]): Promise<unknown> {
    this.#writes.cork()
    // A failure is the failure of the connection, which the command reports.
    if (this.#isAsking) sendCommand(this.#redis, 'asking', []).catch(() => undefined)
    return sendCommand(this.#redis, name, args)
  }

  async #open(): Promise<void> {
    try {
      const [info] = await Promise.all([
        this.#send('info', []),
        // ioredis ignores a failed SELECT and would stay in database 0.
        this.#send('select', [String(this.#address.db)]),
        ...SCRIPTS.map(({ text }) => this.#send('script', ['LOAD', text]))
      ])
      const { runId, replicationId, unusableReason } = parseServerInfo(String(info))
      if (unusableReason !== '') throw new Error(unusableReason)
      const { lossDetector } = this.#dependencies
      const isNewGeneration =
        lossDetector === null
          ? runId !== this.#runId
          : await lossDetector.confirmRun(this.#scriptsOnThisConnection(), runId, replicationId)
      this.#runId = runId
      this.#isOpen = true
      this.#lastError = null
      this.#dependencies.opened(isNewGeneration)
    } catch (error) {
      this.#lastError = toError(error)
      this.reconnect()
    }
  }

  /** Runs scripts before the connection counts as open, and fails once it has been closed. */
  #scriptsOnThisConnection(): RunScript {
    const connection = this.#closedConnections
    return (script, keys, args) => {
      if (connection !== this.#closedConnections) return Promise.reject(new Error('the connection was closed'))
      return this.#send('evalsha', [script.sha, String(keys.length), ...keys, ...args])
    }
  }

  #close(): void {
    this.#closedConnections++
    this.#isOpen = false
    this.#dependencies.lost(this.#lastError ?? new Error('the connection was closed'))
    this.#lastError = null
  }

  #convertError(error: Error): Error {
    const { message } = error
    if (message.startsWith('NOSCRIPT')) return error
    if (SlotError.isReply(message)) return new SlotError(errorText(this.#address, error), message)
    // Older versions of Redis wrap an error within a script in a message of their own.
    if (/^(READONLY|LOADING|MASTERDOWN)|-READONLY /.test(message)) this.reconnect()
    // Error replies of Redis begin with a word in capitals; other errors are about the connection, which reports them itself.
    if (/^[A-Z]+ /.test(message)) this.#dependencies.errorReply(error)
    return new EngineError(errorText(this.#address, error), { cause: error })
  }
}
