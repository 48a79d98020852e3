import { Command, type Redis } from 'ioredis'
import { EngineFault } from '../../core/engine-fault.js'
import { addressName, type RedisAddress } from './address.js'
import { faultText, openConnection } from './connection.js'
import { SCRIPTS, type Script } from './scripts.js'
import { serverInfo } from './server-info.js'
import { TurnCork } from './turn-cork.js'

/** The slot of a channel is elsewhere: whoever asked has to look where. */
export class Moved extends EngineFault {
  override readonly name = 'Moved'
}

export interface CommandLinkParts {
  /** It can be used from now on; or no longer. */
  opened(): void
  lost(cause: Error): void
  /** Redis answered with an error. */
  refused(cause: Error): void
}

/** One server's connection for commands. It is open once the server is known to take them, and has our scripts. */
export class CommandLink {
  readonly #address: RedisAddress
  readonly #parts: CommandLinkParts
  readonly #redis: Redis
  readonly #cork: TurnCork
  #isOpen = false
  #run = ''
  #lastError: Error | null = null

  constructor(address: RedisAddress, parts: CommandLinkParts) {
    this.#address = address
    this.#parts = parts
    this.#redis = openConnection(address, 'commands')
    this.#cork = new TurnCork(this.#redis)
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

  send(name: string, args: readonly string[]): Promise<unknown> {
    if (!this.#isOpen) return Promise.reject(new EngineFault(`Redis at ${addressName(this.#address)} is away`))
    return this.#send(name, args).catch((error: Error) => {
      throw this.#fault(error)
    })
  }

  /** Dials anew: the server behind the connection is no longer the right one. */
  reconnect(): void {
    this.#redis.disconnect(true)
  }

  close(): void {
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
      this.#run = run
      this.#isOpen = true
      this.#lastError = null
      this.#parts.opened()
    } catch (error) {
      this.#lastError = error as Error
      this.reconnect()
    }
  }

  #close(): void {
    this.#isOpen = false
    this.#parts.lost(this.#lastError ?? new Error('the connection was closed'))
    this.#lastError = null
  }

  #fault(error: Error): Error {
    const { message } = error
    if (message.startsWith('NOSCRIPT')) return error
    if (/^(MOVED|ASK|CLUSTERDOWN|TRYAGAIN) ?/.test(message)) return new Moved(faultText(this.#address, error))
    // From within a script older ones say it behind words of their own.
    if (/^(READONLY|LOADING|MASTERDOWN)|-READONLY /.test(message)) this.reconnect()
    // What has a word in capitals in front is an answer of Redis; the others are about the connection, which tells itself.
    if (/^[A-Z]+ /.test(message)) this.#parts.refused(error)
    return new EngineFault(faultText(this.#address, error), { cause: error })
  }
}
