import * as ask from './ask.js'
import { knownNamespace } from './channels.js'
import { connect, type Outcome } from './connect.js'
import type { Connection } from './connection.js'
import * as disconnect from './disconnect.js'
import { Disconnect } from './disconnect.js'
import { EngineFault } from './engine-fault.js'
import { INTERNAL, NOT_AVAILABLE } from './errors.js'
import type { MaybePromise } from './maybe-promise.js'
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

/** Commands whose reply can be large. They wait until the client has taken what was written to it before. */
const LARGE_REPLIES: ReadonlySet<Method> = new Set(['subscribe', 'presence', 'history'])

const MAX_ID = 0xffffffff

/** How long the commands of one client may run before other clients get their turn. */
const SLICE_MS = 5
/** Commands that follow each other within this time belong to the same slice. */
const SLICE_GAP_MS = 1

/** How much may wait before the relay stops reading from the client: messages, and their characters. */
const MAX_QUEUED_MESSAGES = 256
const MAX_QUEUED_LENGTH = 64 * 1024
/** The same where the client sends requests of its own, whose reading cannot be stopped. Beyond it the client is closed. */
const MAX_EMULATED_MESSAGES = 4096
const MAX_EMULATED_LENGTH = 1024 * 1024

const NO_LINES: readonly string[] = []

interface Asked {
  readonly method: Method
  readonly id: number
  readonly namespace: string
  readonly startedAt: number
}

/**
 * Runs the commands of a client one after the other, in the order they came. Where an engine takes its time, or the client
 * does not take its replies, or its commands take long, those that follow wait; if many wait, the relay stops reading from
 * the client.
 */
export class CommandLine {
  readonly connection: Connection
  /** Commands of the message that is being worked on, and the next of them. */
  #lines: readonly string[] = NO_LINES
  #next = 0
  /** Messages behind it. */
  #queue: string[] | null = null
  #queuedLength = 0
  /** Something has to be waited for before the next command. */
  #isWaiting = false
  #sliceStartedAt = 0
  #lastEndedAt = 0
  #second = 0
  #commandsInSecond = 0

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** A message as it came: one command per line. */
  receive(message: string): void {
    const { connection } = this
    if (connection.isEnded) return
    try {
      // A pong shows that the client is there, whatever else waits.
      if (message === PING) this.#runLine(message)
      else if (this.#isWaiting) this.#enqueue(message)
      else if (this.#open(message)) {
        const now = connection.context.monotonicMs()
        if (now - this.#lastEndedAt > SLICE_GAP_MS) this.#sliceStartedAt = now
        this.#work()
      }
    } catch (error) {
      connection.fail(error)
    }
  }

  /** Begins a message; false for one without a command, which is none of the protocol's. */
  #open(message: string): boolean {
    const lines = message.split('\n')
    if (lines[lines.length - 1] === '') lines.pop()
    this.#lines = lines
    this.#next = 0
    if (lines.length === 0) this.connection.end(disconnect.MALFORMED)
    return lines.length > 0
  }

  #enqueue(message: string): void {
    const { connection } = this
    this.#queue ??= []
    this.#queue.push(message)
    this.#queuedLength += message.length
    const messages = this.#queue.length
    if (messages <= MAX_QUEUED_MESSAGES && this.#queuedLength <= MAX_QUEUED_LENGTH) return
    if (!connection.sink.isEmulated) connection.pauseReading()
    else if (messages > MAX_EMULATED_MESSAGES || this.#queuedLength > MAX_EMULATED_LENGTH) {
      connection.end(disconnect.TOO_MANY_COMMANDS)
    }
  }

  /** The next message of the queue; false where there is none. */
  #openNext(): boolean {
    const message = this.#queue?.shift()
    if (message === undefined) {
      this.#lines = NO_LINES
      return false
    }
    this.#queuedLength -= message.length
    if (this.#queue?.length === 0) {
      this.#queue = null
      this.connection.resumeReading()
    }
    return this.#open(message)
  }

  /** Runs what has come until all of it is done, or something has to be waited for. */
  #work(): void {
    const { connection } = this
    connection.holdReplies()
    while (this.#next < this.#lines.length || this.#openNext()) {
      if (connection.context.monotonicMs() - this.#sliceStartedAt >= SLICE_MS) {
        this.#isWaiting = true
        connection.context.interrupted.push(this.#resume)
        break
      }
      const running = this.#runLine(this.#lines[this.#next] as string)
      if (connection.isEnded) return
      if (running === CLIENT_IS_BEHIND) {
        this.#isWaiting = true
        connection.onCaughtUp = this.#resume
        break
      }
      this.#next += 1
      // What came along with a connect that failed is not answered.
      if (connection.state === 'refused') this.#next = this.#lines.length
      if (running instanceof Promise) {
        this.#isWaiting = true
        void this.#resumeAfter(running)
        break
      }
    }
    this.#lastEndedAt = connection.context.monotonicMs()
    connection.sendReplies()
  }

  async #resumeAfter(running: Promise<void>): Promise<void> {
    try {
      await running
    } catch (error) {
      this.connection.fail(error)
    }
    this.#resume()
  }

  readonly #resume = (): void => {
    const { connection } = this
    this.#isWaiting = false
    if (connection.isEnded) return
    try {
      if (connection.state === 'refused') this.#next = this.#lines.length
      this.#sliceStartedAt = connection.context.monotonicMs()
      this.#work()
    } catch (error) {
      connection.fail(error)
    }
  }

  #runLine(line: string): MaybePromise<void> | typeof CLIENT_IS_BEHIND {
    const { connection } = this
    const { sink, context } = connection
    const { watch, monotonicMs } = context
    const command = parse(line)
    if (command === null) {
      connection.end(disconnect.MALFORMED)
      return
    }
    const method = METHODS.find((name) => command[name] !== undefined && command[name] !== null)
    if (method !== undefined && LARGE_REPLIES.has(method) && !this.#hasRoom(method, command[method]))
      return CLIENT_IS_BEHIND
    if (!this.#isWithinRate()) {
      connection.end(disconnect.TOO_MANY_COMMANDS)
      return
    }
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
    return this.#run({ method, id, namespace, startedAt: monotonicMs() }, request, line)
  }

  /** Whether the client has taken what was written to it before, so that a large reply does not wait behind it. */
  #hasRoom(method: Method, request: unknown): boolean {
    const { connection } = this
    // Replies to the subscriptions of a client that has just connected leave together; a recovery has all the room.
    const isSmall = method === 'subscribe' && !(isObject(request) && request.recover === true)
    if (!isSmall) connection.flushReplies()
    return !connection.outbox.isBehind
  }

  #run(asked: Asked, request: unknown, line: string): MaybePromise<void> {
    try {
      const outcome = COMMANDS[asked.method](this.connection, request, asked.id, line)
      if (outcome instanceof Promise) return this.#finish(asked, outcome)
      this.#conclude(asked, outcome)
    } catch (error) {
      this.#conclude(asked, this.#failure(asked, error))
    }
  }

  async #finish(asked: Asked, running: Promise<Outcome>): Promise<void> {
    let outcome: Outcome
    try {
      outcome = await running
    } catch (error) {
      outcome = this.#failure(asked, error)
    }
    this.#conclude(asked, outcome)
  }

  /** An engine that is away is an error that the client may try again after. All else costs the client its connection. */
  #failure({ method }: Asked, error: unknown): Outcome {
    if (error instanceof EngineFault) return INTERNAL
    this.connection.fail(error, method)
    return null
  }

  #conclude({ method, id, namespace, startedAt }: Asked, outcome: Outcome): void {
    const { connection } = this
    const { watch, monotonicMs } = connection.context
    if (outcome instanceof Disconnect) connection.end(outcome)
    else if (outcome !== null && !connection.isEnded) {
      watch.refused(method, namespace, outcome.code)
      connection.reply(errorReplyText(id, outcome))
      if (method === 'connect') connection.refuse()
    }
    watch.answered(method, namespace, (monotonicMs() - startedAt) / 1000)
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

/** The command was not run: its reply would have to wait behind what the client has not taken yet. */
const CLIENT_IS_BEHIND = Symbol('client is behind')

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
