import { after, EngineError, type MaybePromise } from './broker.js'
import {
  type Caller,
  channelNameError,
  hasHistory,
  isTooLong,
  knownNamespace,
  mayPublish,
  maySeeHistory,
  maySeePresence,
  type ResolvedChannel,
  resolveChannel
} from './channels.js'
import type { Client } from './client.js'
import {
  DISCONNECT_MALFORMED,
  DISCONNECT_TOO_MANY_COMMANDS,
  DISCONNECT_UNAVAILABLE,
  Disconnect,
  ERROR_BAD_REQUEST,
  ERROR_INTERNAL,
  ERROR_LIMIT_EXCEEDED,
  ERROR_NOT_AVAILABLE,
  ERROR_PERMISSION_DENIED,
  ReplyError
} from './codes.js'
import { connect, type Outcome, refresh } from './connect.js'
import { fieldText, isObject, onOneLine } from './json.js'
import {
  boundedHistoryText,
  boundedPresenceText,
  channelOf,
  errorReplyText,
  METHODS,
  type Method,
  PING,
  parseHistory,
  presenceStatsText,
  replyText
} from './protocol.js'
import { PLAIN_PUBLICATION, publishToChannel } from './publish.js'
import { readHistory } from './recovery.js'
import { refreshSubscription, subscribe, unsubscribe } from './subscribe.js'

// What a client may ask about a channel, or say on it.

const kindOf = ({ context }: Client, channel: string): ResolvedChannel | ReplyError => {
  const { channelRules: channels } = context
  const kind = resolveChannel(channel, channels)
  if (kind instanceof ReplyError) return kind
  return isTooLong(channel, channels) ? ERROR_BAD_REQUEST : (channelNameError(channel, kind, channels) ?? kind)
}

const callerOn = (client: Client, channel: string): Caller => ({
  user: client.user,
  insecure: client.context.clientOptions.insecure,
  isSubscribed: client.subscriptions.has(channel)
})

/** `text` is the command as it came, so that the data can go on as the bytes it is. */
export const publish = (client: Client, request: unknown, id: number, text: string): MaybePromise<Outcome> => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const kind = kindOf(client, channel)
  if (kind instanceof ReplyError) return kind
  const data = fieldText(fieldText(text, 'publish') ?? '{}', 'data')
  if (data === null) return ERROR_BAD_REQUEST
  if (!mayPublish(kind.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED

  const published = publishToChannel(client.context, kind, channel, {
    ...PLAIN_PUBLICATION,
    data: onOneLine(data),
    info: client.infoText(client.subscriptions.get(channel)?.info ?? null)
  })
  return after(published, (outcome) => {
    if (outcome instanceof ReplyError) return outcome
    client.reply(replyText(id, 'publish', '{}'))
    return null
  })
}

const mayAskPresence = (client: Client, channel: string, action: 'presence' | 'presence_stats'): ReplyError | null => {
  const kind = kindOf(client, channel)
  if (kind instanceof ReplyError) return kind
  if (!kind.options.presence) return ERROR_NOT_AVAILABLE
  if (!maySeePresence(kind.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  client.context.metrics.engineAction(action, kind.namespace)
  return null
}

export const presence = (client: Client, request: unknown, id: number): MaybePromise<Outcome> => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const refusal = mayAskPresence(client, channel, 'presence')
  if (refusal !== null) return refusal
  return after(client.context.presence.read(channel), (present) => {
    const text = boundedPresenceText(present, client.replyBytesLeft)
    if (text === null) return ERROR_LIMIT_EXCEEDED
    client.reply(replyText(id, 'presence', text))
    return null
  })
}

export const presenceStats = (client: Client, request: unknown, id: number): MaybePromise<Outcome> => {
  const channel = channelOf(request)
  if (channel === null) return DISCONNECT_MALFORMED
  const refusal = mayAskPresence(client, channel, 'presence_stats')
  if (refusal !== null) return refusal
  return after(client.context.presence.count(channel), ({ clients, users }) => {
    client.reply(replyText(id, 'presence_stats', presenceStatsText(clients, users)))
    return null
  })
}

export const history = (client: Client, request: unknown, id: number): MaybePromise<Outcome> => {
  const parsed = parseHistory(request)
  if (parsed === null) return DISCONNECT_MALFORMED
  const { channel } = parsed
  const kind = kindOf(client, channel)
  if (kind instanceof ReplyError) return kind
  if (!hasHistory(kind.options)) return ERROR_NOT_AVAILABLE
  if (!maySeeHistory(kind.options, callerOn(client, channel))) return ERROR_PERMISSION_DENIED
  client.context.metrics.engineAction('history', kind.namespace)
  const most = client.context.clientOptions.historyMaxPublicationLimit
  const limit = most > 0 && (parsed.limit < 0 || parsed.limit > most) ? most : parsed.limit
  return after(readHistory(client.context, { ...parsed, limit }, kind.options), (page) => {
    if (page instanceof ReplyError) return page
    const text = boundedHistoryText(page.publications, page, client.replyBytesLeft)
    if (text === null) return ERROR_LIMIT_EXCEEDED
    client.reply(replyText(id, 'history', text))
    return null
  })
}

type Command = (client: Client, request: unknown, id: number, text: string) => MaybePromise<Outcome>

const COMMANDS: Readonly<Record<Method, Command>> = {
  connect,
  subscribe,
  unsubscribe,
  publish,
  presence,
  presence_stats: presenceStats,
  history,
  // Nothing behind this relay answers calls or takes messages.
  rpc: () => ERROR_NOT_AVAILABLE,
  send: () => DISCONNECT_UNAVAILABLE,
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
export class CommandQueue {
  readonly #client: Client
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

  constructor(client: Client) {
    this.#client = client
  }

  /** A message as it came: one command per line. */
  handle(message: string): void {
    const connection = this.#client
    if (connection.isClosed) return
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
    if (lines.length === 0) this.#client.close(DISCONNECT_MALFORMED)
    return lines.length > 0
  }

  #enqueue(message: string): void {
    const connection = this.#client
    this.#queue ??= []
    this.#queue.push(message)
    this.#queuedLength += message.length
    const messages = this.#queue.length
    if (messages <= MAX_QUEUED_MESSAGES && this.#queuedLength <= MAX_QUEUED_LENGTH) return
    if (!connection.transport.isEmulated) connection.pauseReading()
    else if (messages > MAX_EMULATED_MESSAGES || this.#queuedLength > MAX_EMULATED_LENGTH) {
      connection.close(DISCONNECT_TOO_MANY_COMMANDS)
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
      this.#client.resumeReading()
    }
    return this.#open(message)
  }

  /** Runs what has come until all of it is done, or something has to be waited for. */
  #work(): void {
    const connection = this.#client
    connection.holdReplies()
    while (this.#next < this.#lines.length || this.#openNext()) {
      if (connection.context.monotonicMs() - this.#sliceStartedAt >= SLICE_MS) {
        this.#isWaiting = true
        connection.context.interrupted.push(this.#resume)
        break
      }
      const running = this.#runLine(this.#lines[this.#next] as string)
      if (connection.isClosed) return
      if (running === CLIENT_IS_BEHIND) {
        this.#isWaiting = true
        connection.onCaughtUp = this.#resume
        break
      }
      this.#next += 1
      // What came along with a connect that failed is not answered.
      if (connection.state === 'rejected') this.#next = this.#lines.length
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
      this.#client.fail(error)
    }
    this.#resume()
  }

  readonly #resume = (): void => {
    const connection = this.#client
    this.#isWaiting = false
    if (connection.isClosed) return
    try {
      if (connection.state === 'rejected') this.#next = this.#lines.length
      this.#sliceStartedAt = connection.context.monotonicMs()
      this.#work()
    } catch (error) {
      connection.fail(error)
    }
  }

  #runLine(line: string): MaybePromise<void> | typeof CLIENT_IS_BEHIND {
    const connection = this.#client
    const { transport, context } = connection
    const { metrics, monotonicMs } = context
    const command = parse(line)
    if (command === null) {
      connection.close(DISCONNECT_MALFORMED)
      return
    }
    const method = METHODS.find((name) => command[name] !== undefined && command[name] !== null)
    if (method !== undefined && LARGE_REPLIES.has(method) && !this.#hasRoom(method, command[method]))
      return CLIENT_IS_BEHIND
    if (!this.#isWithinRate()) {
      connection.close(DISCONNECT_TOO_MANY_COMMANDS)
      return
    }
    if (method === undefined) {
      metrics.command('pong', '', line.length, transport.name)
      const isPong = connection.state === 'live' && Object.keys(command).length === 0
      if (!isPong || !connection.pong()) connection.close(DISCONNECT_MALFORMED)
      return
    }
    const id = command.id === undefined ? 0 : command.id
    // A refused connection says nothing more, and nothing comes before connect.
    const isInTurn = connection.state === 'live' || (connection.state === 'new' && method === 'connect')
    if (!isId(id) || (id === 0 && method !== 'send') || !isInTurn) {
      connection.close(DISCONNECT_MALFORMED)
      return
    }
    const request = command[method]
    const namespace = isObject(request) ? knownNamespace(request.channel, context.channelRules) : ''
    metrics.command(method, namespace, line.length, transport.name)
    connection.replyTraffic = metrics.sent(transport.name, method, namespace)
    return this.#run({ method, id, namespace, startedAt: monotonicMs() }, request, line)
  }

  /** Whether the client has taken what was written to it before, so that a large reply does not wait behind it. */
  #hasRoom(method: Method, request: unknown): boolean {
    const connection = this.#client
    // Replies to the subscriptions of a client that has just connected leave together; a recovery has all the room.
    const isSmall = method === 'subscribe' && !(isObject(request) && request.recover === true)
    if (!isSmall) connection.flushReplies()
    return !connection.outbox.isBehind
  }

  #run(asked: Asked, request: unknown, line: string): MaybePromise<void> {
    try {
      const outcome = COMMANDS[asked.method](this.#client, request, asked.id, line)
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
    if (error instanceof EngineError) return ERROR_INTERNAL
    this.#client.fail(error, method)
    return null
  }

  #conclude({ method, id, namespace, startedAt }: Asked, outcome: Outcome): void {
    const connection = this.#client
    const { metrics, monotonicMs } = connection.context
    if (outcome instanceof Disconnect) connection.close(outcome)
    else if (outcome !== null && !connection.isClosed) {
      metrics.replyError(method, namespace, outcome.code)
      connection.reply(errorReplyText(id, outcome))
      if (method === 'connect') connection.reject()
    }
    metrics.replied(method, namespace, (monotonicMs() - startedAt) / 1000)
  }

  #isWithinRate(): boolean {
    const { clientOptions: client, monotonicMs } = this.#client.context
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
