import { isObject } from '../../../shared/is-object.js'
import { knownNamespace } from '../channel-names.js'
import { type Encoded, PONG, payloadBytes } from '../codec/codec.js'
import { DISCONNECT_MALFORMED, DISCONNECT_TOO_MANY_COMMANDS, Disconnect, ERROR_INTERNAL } from '../codes.js'
import { EngineError } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import { METHODS, type Method } from '../protocol.js'
import type { Client, CommandOutcome, FrameHandler, RunningCommand } from '../session/client.js'
import { limitError } from './command-limits.js'
import { COMMAND_HANDLERS } from './commands.js'

/** Commands whose replies may be large. They wait until the network has accepted everything written before. */
const WAITS_FOR_NETWORK: ReadonlySet<Method> = new Set(['subscribe', 'presence', 'history', 'rpc'])

const MAX_ID = 0xffffffff

/** How long the commands of one client may run before other clients get their turn. */
const SLICE_MS = 5
/** Commands within this interval belong to the same slice. */
const SLICE_GAP_MS = 1

/** Frames and their characters or bytes that may wait before the relay stops reading from the client. */
const MAX_QUEUED_FRAMES = 256
const MAX_QUEUED_LENGTH = 64 * 1024
/** The same for emulated transports, whose reading cannot be stopped. Above it the client is closed. */
const MAX_EMULATED_FRAMES = 4096
const MAX_EMULATED_LENGTH = 1024 * 1024

const NO_COMMANDS: readonly Encoded[] = []

/** A command that is being processed. */
interface Running extends RunningCommand {
  readonly method: Method
  /** '' for a command without a channel; null for a call of the backend, which may run beside any other command. */
  readonly channel: string | null
  readonly namespace: string
  readonly isLarge: boolean
  readonly startedAt: number
}

/** The reason why the next command is not started. */
type Wait = 'commands' | 'network' | 'turn'

/**
 * Starts the commands of a client in the order of their arrival. Up to `client.concurrency` of them run at the same time, by
 * default one. Later commands wait while those run, while the client does not read its replies, and while the client has
 * used up its time slice. If many are waiting, the relay stops reading from the client.
 */
export class CommandQueue implements FrameHandler {
  readonly #client: Client
  /** Commands of the current frame, and the index of the next one. */
  #commands: readonly Encoded[] = NO_COMMANDS
  #next = 0
  /** Frames after the current one. */
  #queue: (string | Buffer)[] | null = null
  #queuedLength = 0
  /** Null if the next command can start. */
  #waitsFor: Wait | null = null
  /** Commands that wait for the engine, the backend, or the keys of a token; null for none, to save memory. */
  #running: Running[] | null = null
  #sliceStartedAt = 0
  #lastRanAt = 0
  #second = 0
  #commandsInSecond = 0

  constructor(client: Client) {
    this.#client = client
  }

  handle(frame: string | Buffer): void {
    const client = this.#client
    // After a failed connect, everything is ignored until the client closes the connection or it is closed as stale.
    if (client.isClosed || client.state === 'rejected') return
    try {
      // A pong is processed at once, because it shows that the client is alive.
      if (client.codec.isPongFrame(frame)) this.#runPong(frame.length)
      else if (this.#waitsFor !== null) this.#enqueue(frame)
      else if (this.#open(frame)) {
        this.#continueSlice()
        this.#run()
      }
    } catch (error) {
      client.fail(error)
    }
  }

  /** Starts a frame. Returns false if it contains no command, which is a protocol error. */
  #open(frame: string | Buffer): boolean {
    const client = this.#client
    const commands = client.codec.split(frame)
    this.#commands = commands ?? NO_COMMANDS
    this.#next = 0
    if (commands === null) client.close(DISCONNECT_MALFORMED)
    return commands !== null
  }

  #enqueue(frame: string | Buffer): void {
    const client = this.#client
    this.#queue ??= []
    this.#queue.push(frame)
    this.#queuedLength += frame.length
    const frames = this.#queue.length
    if (frames <= MAX_QUEUED_FRAMES && this.#queuedLength <= MAX_QUEUED_LENGTH) return
    if (!client.transport.isEmulated) client.pauseReading()
    else if (frames > MAX_EMULATED_FRAMES || this.#queuedLength > MAX_EMULATED_LENGTH) {
      client.close(DISCONNECT_TOO_MANY_COMMANDS)
    }
  }

  /** Starts the next frame of the queue. Returns false if there is none. */
  #openNext(): boolean {
    const frame = this.#queue?.shift()
    if (frame === undefined) {
      this.#commands = NO_COMMANDS
      return false
    }
    this.#queuedLength -= frame.length
    if (this.#queue?.length === 0) {
      this.#queue = null
      this.#client.resumeReading()
    }
    return this.#open(frame)
  }

  /** Runs commands until all are done or one has to wait. */
  #run(): void {
    const client = this.#client
    const { context } = client
    client.replies.hold()
    while (this.#next < this.#commands.length || this.#openNext()) {
      if (context.monotonicMs() - this.#sliceStartedAt >= SLICE_MS) {
        this.#waitsFor = 'turn'
        context.interrupted.push(this.#resume)
        break
      }
      const wait = this.#isFull ? 'commands' : this.#runNext(this.#commands[this.#next] ?? '')
      if (client.isClosed) return
      if (wait !== null) {
        this.#waitsFor = wait
        if (wait === 'network') client.onCaughtUp = this.#resume
        break
      }
      this.#next += 1
    }
    if (this.#isFull) this.#waitsFor ??= 'commands'
    this.#lastRanAt = context.monotonicMs()
    if (this.#runningCount === 0) client.replies.send()
    // The replies so far are sent with the next ones if those follow in this turn, and without them otherwise.
    else if (client.replies.isWaiting) context.atEndOfTurn(() => client.replies.flush())
  }

  get #runningCount(): number {
    return this.#running?.length ?? 0
  }

  /** Whether another command has to wait until a running one is finished. */
  get #isFull(): boolean {
    if (this.#runningCount === 0) return false
    const { state, context } = this.#client
    // The connect command runs alone.
    return state !== 'live' || this.#runningCount >= context.clientOptions.concurrency
  }

  /** Commands after a failed connect are not processed. */
  #discardQueue(): void {
    this.#next = this.#commands.length
    this.#queue = null
    this.#queuedLength = 0
    this.#client.resumeReading()
  }

  async #resumeAfter(running: Running, pending: Promise<CommandOutcome>): Promise<void> {
    const client = this.#client
    let outcome: CommandOutcome
    try {
      outcome = await pending
    } catch (error) {
      outcome = this.#failure(running, error)
    }
    try {
      this.#finish(running, outcome)
      const others = this.#running?.filter((each) => each !== running) ?? []
      this.#running = others.length === 0 ? null : others
      if (client.isClosed) return
      if (this.#waitsFor === 'network' || this.#waitsFor === 'turn') {
        client.replies.flush()
        return
      }
      this.#waitsFor = null
      this.#continueSlice()
      this.#run()
    } catch (error) {
      client.fail(error)
    }
  }

  /** Starts a new slice, unless the last command ran just before. */
  #continueSlice(): void {
    const now = this.#client.context.monotonicMs()
    if (now - this.#lastRanAt > SLICE_GAP_MS) this.#sliceStartedAt = now
  }

  readonly #resume = (): void => {
    const client = this.#client
    this.#waitsFor = null
    if (client.isClosed) return
    try {
      this.#sliceStartedAt = client.context.monotonicMs()
      this.#run()
    } catch (error) {
      client.fail(error)
    }
  }

  #runPong(bytes: number): void {
    const client = this.#client
    if (!this.#isWithinRate()) {
      client.close(DISCONNECT_TOO_MANY_COMMANDS)
      return
    }
    client.context.metrics.command('pong', '', bytes, client.transport.name)
    if (client.state !== 'live' || !client.deadlines.pong()) client.close(DISCONNECT_MALFORMED)
  }

  /** Starts a command, or returns the reason why it has to wait. */
  #runNext(encoded: Encoded): Wait | null {
    const client = this.#client
    const { transport, context, codec } = client
    const { metrics, monotonicMs } = context
    const command = codec.decode(encoded)
    if (command === PONG) {
      this.#runPong(encoded.length)
      return null
    }
    if (command === null) {
      client.close(DISCONNECT_MALFORMED)
      return null
    }
    const method = METHODS.find((name) => command[name] !== undefined && command[name] !== null)
    const request = method === undefined ? undefined : command[method]
    const channel = isObject(request) && typeof request.channel === 'string' ? request.channel : ''
    const isLarge = method !== undefined && hasLargeReply(method, request)
    const order = method === 'rpc' ? null : channel
    if (this.#isBlocked(order, isLarge)) return 'commands'
    if (method !== undefined && WAITS_FOR_NETWORK.has(method)) {
      if (isLarge) client.replies.flush()
      if (client.isBehind) return 'network'
    }
    if (!this.#isWithinRate()) {
      client.close(DISCONNECT_TOO_MANY_COMMANDS)
      return null
    }
    const { id = 0 } = command
    // The first command must be connect, and it must occur only once.
    const isExpected = client.state === 'live' || (client.state === 'new' && method === 'connect')
    if (method === undefined || !isId(id) || (id === 0 && method !== 'send') || !isExpected) {
      client.close(DISCONNECT_MALFORMED)
      return null
    }
    const namespace = knownNamespace(channel, context.channelRules)
    metrics.command(method, namespace, payloadBytes(encoded), transport.name)
    const traffic = metrics.sent(transport.name, method, namespace)
    this.#start({ id, traffic, method, channel: order, namespace, isLarge, startedAt: monotonicMs() }, request, encoded)
    return null
  }

  /**
   * Commands for the same channel run one after the other, and so do those without a channel: an unsubscribe must not
   * overtake its subscribe. Large replies are made one at a time, because each may need the whole queue of the client.
   */
  #isBlocked(channel: string | null, isLarge: boolean): boolean {
    if (this.#running === null) return false
    for (const running of this.#running) {
      if ((channel !== null && running.channel === channel) || (running.isLarge && isLarge)) return true
    }
    return false
  }

  #start(running: Running, request: unknown, encoded: Encoded): void {
    let outcome: MaybePromise<CommandOutcome>
    try {
      outcome = after(
        limitError(this.#client, running.method, running.channel ?? ''),
        (error) => error ?? this.#execute(running, request, encoded)
      )
    } catch (error) {
      outcome = this.#failure(running, error)
    }
    if (outcome instanceof Promise) {
      this.#running ??= []
      this.#running.push(running)
      void this.#resumeAfter(running, outcome)
    } else this.#finish(running, outcome)
  }

  /** Does nothing if the client was closed while the command waited for its limits. */
  #execute(running: Running, request: unknown, encoded: Encoded): MaybePromise<CommandOutcome> {
    const client = this.#client
    return client.isClosed ? null : COMMAND_HANDLERS[running.method](client, request, running, encoded)
  }

  /** The client may retry after an engine error. Any other error closes the connection. */
  #failure({ method }: Running, error: unknown): CommandOutcome {
    if (error instanceof EngineError) return ERROR_INTERNAL
    this.#client.fail(error, method)
    return null
  }

  #finish(running: Running, outcome: CommandOutcome): void {
    const client = this.#client
    const { method, namespace, startedAt } = running
    const { metrics, monotonicMs } = client.context
    if (outcome instanceof Disconnect) client.close(outcome)
    else if (outcome !== null && !client.isClosed) {
      metrics.replyError(method, namespace, outcome.code)
      client.replyError(running, outcome)
      if (method === 'connect') {
        client.reject()
        this.#discardQueue()
      }
    }
    metrics.replied(method, namespace, (monotonicMs() - startedAt) / 1000)
  }

  #isWithinRate(): boolean {
    const { clientOptions, monotonicMs } = this.#client.context
    if (clientOptions.commandsPerSecond <= 0) return true
    const second = Math.floor(monotonicMs() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#commandsInSecond = 0
    }
    if (++this.#commandsInSecond <= clientOptions.commandsPerSecond) return true
    this.#client.limitReached(`${clientOptions.commandsPerSecond} commands per second of a connection`)
    return false
  }
}

/** A subscription to a stream and most calls of a backend have small replies, which are sent together with others. */
const hasLargeReply = (method: Method, request: unknown): boolean =>
  method === 'subscribe'
    ? isObject(request) && (request.recover === true || isMapType(request.type))
    : method !== 'rpc' && WAITS_FOR_NETWORK.has(method)

const isMapType = (type: unknown): boolean => typeof type === 'number' && type > 0

const isId = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_ID
