import { Command, type Redis } from 'ioredis'
import { EngineError } from '../../core/broker.js'
import { addressName, type RedisAddress } from './address.js'
import { PublishBatcher, type StoredPublication } from './engine.js'
import type { Ledger, RunScript } from './ledger.js'
import { IDEMPOTENT_RESULT_TTL_MS, PUBLISH_WITH_HISTORY, SCRIPTS, type Script } from './scripts.js'
import { faultText, openConnection, serverInfo } from './shard.js'

/** Holds back what is written to a connection until the turn of the event loop ends: a burst leaves in one write. */
export class WriteBatcher {
  readonly #redis: Redis
  readonly #turnEnds: () => void
  #isCorked = false

  /** Before what was held back leaves, `turnEnds` may add to it. */
  constructor(redis: Redis, turnEnds: () => void = () => undefined) {
    this.#redis = redis
    this.#turnEnds = turnEnds
  }

  hold(): void {
    if (this.#isCorked) return
    const { stream } = this.#redis
    // There is none before the first connection.
    if (stream === undefined) return
    this.#isCorked = true
    stream.cork()
    setImmediate(() => {
      this.#turnEnds()
      this.#isCorked = false
      stream.uncork()
    })
  }
}

/** The slot of a channel is elsewhere: whoever asked has to look where. */
export class Moved extends EngineError {
  override readonly name = 'Moved'
}

export interface CommandLinkParts {
  readonly publishCommand: string
  /** What the names of messages end with here. */
  readonly topicEnd: string
  /** Null in a cluster. */
  readonly ledger: Ledger | null
  /** It can be used from now on, with all the data of before or with a new generation; or no longer. */
  opened(isNewGeneration: boolean): void
  lost(cause: Error): void
  /** Redis answered with an error. */
  refused(cause: Error): void
}

/** One server's connection for commands. It is open once the server is known to take them, and has our scripts. */
export class CommandLink {
  readonly #address: RedisAddress
  readonly #parts: CommandLinkParts
  readonly #redis: Redis
  readonly #cork: WriteBatcher
  readonly #bursts: PublishBatcher
  #isOpen = false
  #run = ''
  /** How many connections have ended. */
  #connections = 0
  readonly #runScript: RunScript = (script, keys, args) => this.runScript(script, keys, args)
  #lastError: Error | null = null

  constructor(address: RedisAddress, parts: CommandLinkParts) {
    this.#address = address
    this.#parts = parts
    this.#redis = openConnection(address, 'commands')
    this.#bursts = new PublishBatcher(parts.ledger === null ? [] : [parts.ledger.key], (keys, args) =>
      this.runPublishScript(PUBLISH_WITH_HISTORY, keys, args)
    )
    this.#cork = new WriteBatcher(this.#redis, () => this.#bursts.leave())
    this.#redis.on('ready', () => void this.#open())
    this.#redis.on('close', () => this.#close())
    // Said at every attempt to connect; told once, when it closes.
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Of the server behind the connection; it is another one after a restart, or when a replica has taken over. */
  get run(): string {
    return this.#run
  }

  async runScript(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    try {
      return await this.send('evalsha', [script.sha, String(keys.length), ...keys, ...args])
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('NOSCRIPT')) throw error
      // Somebody emptied the cache of scripts.
      return this.send('eval', [script.text, String(keys.length), ...keys, ...args])
    }
  }

  /** With the arguments that every script that publishes begins with. */
  runPublishScript(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    // Writes have to be numbered in the order in which they leave.
    this.#bursts.leave()
    const { ledger, publishCommand, topicEnd } = this.#parts
    const all = [ledger?.key ?? '', this.#run, publishCommand, topicEnd, IDEMPOTENT_RESULT_TTL_MS, ...args]
    return ledger === null
      ? this.runScript(script, keys, ['', '', ...all])
      : ledger.write(this.#runScript, script, keys, all)
  }

  /** A message to this connection's own name; settles when Redis has taken it. */
  beat(topic: string): Promise<unknown> {
    this.#bursts.leave()
    const { ledger, publishCommand, topicEnd } = this.#parts
    const publish = (): Promise<unknown> => this.send(publishCommand, [topic + topicEnd, ''])
    // A Redis without memory takes the message only.
    return ledger === null ? publish() : ledger.beat(this.#runScript, topic, publishCommand, topicEnd).catch(publish)
  }

  /** Appends to the history of a channel, and publishes; what one turn publishes there leaves together. */
  publishKept(name: string, channelArguments: readonly string[], publication: StoredPublication): Promise<string> {
    if (!this.#isOpen) return Promise.reject(this.#away())
    this.#cork.hold()
    return this.#bursts.add(name, channelArguments, publication)
  }

  send(name: string, args: readonly string[]): Promise<unknown> {
    if (!this.#isOpen) return Promise.reject(this.#away())
    // What was published before must not come behind.
    this.#bursts.leave()
    return this.#send(name, args).catch((error: Error) => {
      throw this.#fault(error)
    })
  }

  /** Dials anew: the server behind the connection is no longer the right one. */
  reconnect(): void {
    this.#redis.disconnect(true)
  }

  close(): void {
    const { ledger } = this.#parts
    // Nobody has to wait for this node when the server is restarted.
    if (this.#isOpen && ledger !== null) this.#send('hdel', ledger.ownFields).catch(() => undefined)
    this.#redis.disconnect()
  }

  #send(name: string, args: readonly string[]): Promise<unknown> {
    this.#cork.hold()
    return this.#redis.sendCommand(new Command(name, [...args], { replyEncoding: 'utf8' })) as Promise<unknown>
  }

  async #open(): Promise<void> {
    try {
      const [info] = await Promise.all([
        this.#send('info', []),
        // Said once more, because a number that there is not would leave us in the first database.
        this.#send('select', [String(this.#address.db)]),
        ...SCRIPTS.map(({ text }) => this.#send('script', ['LOAD', text]))
      ])
      const { run, refusal } = serverInfo(String(info))
      if (refusal !== '') throw new Error(refusal)
      const isNewGeneration = (await this.#parts.ledger?.adopt(this.#onThisConnection(), run)) ?? run !== this.#run
      this.#run = run
      this.#isOpen = true
      this.#lastError = null
      this.#parts.opened(isNewGeneration)
    } catch (error) {
      this.#lastError = error as Error
      this.reconnect()
    }
  }

  /** Runs scripts before the connection is open, and fails once it is another one. */
  #onThisConnection(): RunScript {
    const client = this.#connections
    return (script, keys, args) => {
      if (client !== this.#connections) return Promise.reject(new Error('the connection was closed'))
      return this.#send('evalsha', [script.sha, String(keys.length), ...keys, ...args])
    }
  }

  #close(): void {
    this.#connections++
    this.#isOpen = false
    this.#parts.lost(this.#lastError ?? new Error('the connection was closed'))
    this.#lastError = null
  }

  #away(): EngineError {
    return new EngineError(`Redis at ${addressName(this.#address)} is away`)
  }

  #fault(error: Error): Error {
    const { message } = error
    if (message.startsWith('NOSCRIPT')) return error
    if (/^(MOVED|ASK|CLUSTERDOWN|TRYAGAIN) ?/.test(message)) return new Moved(faultText(this.#address, error))
    // From within a script older ones say it behind words of their own.
    if (/^(READONLY|LOADING|MASTERDOWN)|-READONLY /.test(message)) this.reconnect()
    // What has a word in capitals in front is an answer of Redis; the others are about the connection, which tells itself.
    if (/^[A-Z]+ /.test(message)) this.#parts.refused(error)
    return new EngineError(faultText(this.#address, error), { cause: error })
  }
}
