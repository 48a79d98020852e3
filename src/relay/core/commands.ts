import * as ask from './ask.js'
import { knownNamespace } from './channels.js'
import { connect, type Outcome } from './connect.js'
import type { Connection } from './connection.js'
import * as disconnect from './disconnect.js'
import { Disconnect } from './disconnect.js'
import { EngineFault } from './engine-fault.js'
import { INTERNAL, NOT_AVAILABLE } from './errors.js'
import { after, type MaybePromise } from './maybe-promise.js'
import { errorReplyText, METHODS, type Method, PING } from './protocol.js'
import { refresh } from './refresh.js'
import { isObject } from './requests.js'
import { refreshSubscription, subscribe, unsubscribe } from './subscribe.js'

type Command = (connection: Connection, request: unknown, id: number, text: string) => MaybePromise<Outcome>

const COMMANDS: Readonly<Record<Method, Command>> = {
  connect,
  subscribe,
  unsubscribe,
  publish: ask.publish,
  presence: ask.presence,
  presence_stats: ask.presenceStats,
  history: ask.history,
  // Nothing behind this relay answers calls or takes messages.
  rpc: () => NOT_AVAILABLE,
  send: () => disconnect.UNAVAILABLE,
  refresh,
  sub_refresh: refreshSubscription
}

const MAX_ID = 0xffffffff

interface Asked {
  readonly method: Method
  readonly id: number
  readonly namespace: string
}

/**
 * Runs the commands of a client one after the other, in the order they came. Where an engine takes its time those that
 * follow wait, up to a limit that no honest client meets.
 */
export class CommandLine {
  readonly connection: Connection
  #waiting: string[] | null = null
  #second = 0
  #commandsInSecond = 0

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** A message as it came: one command per line. */
  receive(message: string): void {
    const connection = this.connection
    if (connection.isEnded) return
    if (message === PING) {
      this.#runOne(message)
      return
    }
    const lines = message.split('\n')
    if (lines[lines.length - 1] === '') lines.pop()
    if (this.#waiting !== null) {
      if (this.#waiting.length + lines.length > MAX_WAITING) connection.end(disconnect.TOO_MANY_COMMANDS)
      else this.#waiting.push(...lines)
      return
    }
    // A message without a command is none of the protocol's.
    if (lines.length === 0) connection.end(disconnect.MALFORMED)
    else this.#run(lines)
  }

  #run(lines: readonly string[]): void {
    const connection = this.connection
    connection.holdReplies()
    for (let index = 0; index < lines.length; index++) {
      const running = this.#runOne(lines[index] as string)
      if (connection.isEnded) return
      // What came along with a connect that failed is not answered.
      if (connection.state === 'refused') break
      if (running instanceof Promise) {
        this.#waiting = lines.slice(index + 1)
        void running.then(() => this.#resume())
        break
      }
    }
    connection.sendReplies()
  }

  #resume(): void {
    const lines = this.#waiting ?? []
    this.#waiting = null
    if (!this.connection.isEnded && lines.length > 0) this.#run(lines)
  }

  #runOne(line: string): MaybePromise<void> {
    const connection = this.connection
    if (!this.#isWithinRate()) {
      connection.end(disconnect.TOO_MANY_COMMANDS)
      return
    }
    const { sink, context } = connection
    const { watch, monotonicMs } = context
    const command = parse(line)
    if (command === null) {
      connection.end(disconnect.MALFORMED)
      return
    }
    const method = METHODS.find((name) => command[name] !== undefined && command[name] !== null)
    if (method === undefined) {
      watch.command('pong', '', line.length, sink.transport)
      const isPong = connection.state === 'live' && Object.keys(command).length === 0
      if (!isPong || !connection.pong()) connection.end(disconnect.MALFORMED)
      return
    }
    const id = command.id === undefined ? 0 : command.id
    // A refused connection says nothing more, and nothing comes before connect.
    const isInTurn = connection.state === 'live' || (connection.state === 'new' && method === 'connect')
    if (!isId(id) || (id === 0 && method !== 'send') || !isInTurn) {
      connection.end(disconnect.MALFORMED)
      return
    }
    const request = command[method]
    const namespace = isObject(request) ? knownNamespace(request.channel, context.channels) : ''
    watch.command(method, namespace, line.length, sink.transport)
    connection.answering = watch.sent(sink.transport, method, namespace)
    const startedAt = monotonicMs()
    return after(
      this.#finish({ method, id, namespace }, () => COMMANDS[method](connection, request, id, line)),
      () => watch.answered(method, namespace, (monotonicMs() - startedAt) / 1000)
    )
  }

  #finish(asked: Asked, run: () => MaybePromise<Outcome>): MaybePromise<void> {
    try {
      const outcome = run()
      if (!(outcome instanceof Promise)) {
        this.#conclude(asked, outcome)
        return
      }
      return outcome.then(
        (settled) => this.#conclude(asked, settled),
        (error) => this.#fail(asked, error)
      )
    } catch (error) {
      this.#fail(asked, error)
    }
  }

  #fail(asked: Asked, error: unknown): void {
    if (!(error instanceof EngineFault)) {
      this.connection.context.log.error({ err: error, method: asked.method }, 'a command failed')
    }
    this.#conclude(asked, INTERNAL)
  }

  #conclude({ method, id, namespace }: Asked, outcome: Outcome): void {
    const connection = this.connection
    if (outcome === null || connection.isEnded) return
    if (outcome instanceof Disconnect) {
      connection.end(outcome)
      return
    }
    connection.context.watch.refused(method, namespace, outcome.code)
    connection.reply(errorReplyText(id, outcome))
    if (method === 'connect') connection.refuse()
  }

  #isWithinRate(): boolean {
    const { client, monotonicMs } = this.connection.context
    if (client.commandsPerSecond <= 0) return true
    const second = Math.floor(monotonicMs() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#commandsInSecond = 0
    }
    return ++this.#commandsInSecond <= client.commandsPerSecond
  }
}

const MAX_WAITING = 256

const isId = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_ID

const parse = (line: string): Readonly<Record<string, unknown>> | null => {
  try {
    const command: unknown = JSON.parse(line)
    return isObject(command) ? command : null
  } catch {
    return null
  }
}
