import type { MaybePromise } from '../../core/broker.js'
import type { Log } from '../../core/relay.js'
import type {
  Cluster,
  Command,
  CommandResult,
  NodeResult,
  SurveyHandlers,
  SurveyName,
  SurveyParams,
  SurveyResult
} from '../../core/survey.js'
import type { RedisBus } from './bus.js'
import { AppliedCommands, CommandLog } from './command-log.js'
import type { Shard } from './shard.js'

/** What nodes tell each other. */
export type ClusterMessage =
  /** It is there. Who is new wants to hear from the others at once. */
  | { readonly kind: 'here'; readonly node: string; readonly isNew: boolean }
  | { readonly kind: 'gone'; readonly node: string }
  | {
      readonly kind: 'ask'
      readonly id: number
      readonly from: string
      /** Null for everybody. */
      readonly to: string | null
      readonly question: string
      readonly params: unknown
    }
  | { readonly kind: 'answer'; readonly id: number; readonly node: string; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly id: number; readonly node: string }

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isId: Check = (value) => Number.isSafeInteger(value)
const isThere: Check = (value) => value !== undefined

const SHAPES: Readonly<Record<ClusterMessage['kind'], Readonly<Record<string, Check>>>> = {
  here: { node: isText, isNew: (value) => typeof value === 'boolean' },
  gone: { node: isText },
  ask: { id: isId, from: isText, to: (value) => value === null || isText(value), question: isText, params: isThere },
  answer: { id: isId, node: isText, answer: isThere },
  failed: { id: isId, node: isText }
}

/** Null for what no node of ours has sent. */
export const parseClusterMessage = (text: string): ClusterMessage | null => {
  let message: Record<string, unknown>
  try {
    message = Object(JSON.parse(text))
  } catch {
    return null
  }
  const { kind } = message
  if (typeof kind !== 'string' || !Object.hasOwn(SHAPES, kind)) return null
  const shape = Object.entries(SHAPES[kind as ClusterMessage['kind']])
  return shape.every(([name, isRight]) => isRight(message[name])) ? (message as unknown as ClusterMessage) : null
}

/** The other nodes that have been heard of lately. One that says nothing for the time of its lease has left. */
export class NodeLeases {
  readonly #leaseMs: number
  readonly #nowMs: () => number
  readonly #heardAt = new Map<string, number>()

  constructor(leaseMs: number, nowMs: () => number) {
    this.#leaseMs = leaseMs
    this.#nowMs = nowMs
  }

  get nodes(): readonly string[] {
    const since = this.#nowMs() - this.#leaseMs
    for (const [node, at] of this.#heardAt) if (at < since) this.#heardAt.delete(node)
    return [...this.#heardAt.keys()]
  }

  heard(node: string): void {
    this.#heardAt.set(node, this.#nowMs())
  }

  left(node: string): void {
    this.#heardAt.delete(node)
  }
}

/** Enough for a node that is busy; one that is gone costs so much until its lease has ended. */
const ANSWER_WITHIN_MS = 2_000

export interface ClusterTimings {
  readonly heartbeatMs: number
  /** After so long without a heartbeat a node has left. */
  readonly leaseMs: number
}

export const CLUSTER_TIMINGS: ClusterTimings = { heartbeatMs: 3_000, leaseMs: 7_000 }
/** How often a node reads the command log between two heartbeats. */
const READINGS_PER_HEARTBEAT = 3
/** Unconfirmed commands that are tried again. The log keeps the others for the nodes that have not applied them. */
const MAX_PENDING = 1_000

const CLUSTER_TOPIC = 'fleet'
const COMMANDS: ReadonlySet<string> = new Set<Command>(['disconnect', 'unsubscribe', 'subscribe', 'refresh'])

type Ask = Extract<ClusterMessage, { readonly kind: 'ask' }>
type Reply = Extract<ClusterMessage, { readonly kind: 'answer' | 'failed' }>

interface Applied {
  readonly answer: unknown
}

/** A question on its way: whose answers are missing, and those that came. */
class PendingSurvey {
  readonly missing: Set<string>
  readonly answers = new Map<string, unknown>()
  #done = (): void => undefined

  constructor(missing: Iterable<string>) {
    this.missing = new Set(missing)
  }

  answered(node: string, answer: unknown): void {
    this.answers.set(node, answer)
    this.settled(node)
  }

  /** The node is not waited for any longer. */
  settled(node: string): void {
    this.missing.delete(node)
    if (this.missing.size === 0) this.#done()
  }

  /** Done when nobody is missing, or when it has taken too long. */
  async complete(failed?: Promise<never>): Promise<void> {
    if (this.missing.size === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#done = resolve
      timer = setTimeout(resolve, ANSWER_WITHIN_MS)
      failed?.catch(resolve)
    })
    clearTimeout(timer)
  }
}

/** A command of this node, until every live node has applied it. */
class SentCommand extends PendingSurvey {
  readonly message: Ask
  /** Where it stands in the log. */
  readonly logged = new Set<Shard>()

  constructor(message: Ask, missing: Iterable<string>) {
    super(missing)
    this.message = message
  }
}

/** Relays that share a Redis and a prefix. They tell each other that they are there, and ask each other by messages. */
export class RedisCluster implements Cluster {
  readonly #bus: RedisBus
  readonly #log: Log
  readonly #times: ClusterTimings
  readonly #leases: NodeLeases
  readonly #asked = new Map<number, PendingSurvey>()
  readonly #commandLog: CommandLog
  readonly #applied = new AppliedCommands<Applied>()
  readonly #pending = new Map<number, SentCommand>()
  /** Nodes with a lease, by server. */
  readonly #leased = new Map<Shard, readonly string[]>()
  #asks = 0
  #node = ''
  #answers: SurveyHandlers | null = null
  #missedCommands = (): void => undefined
  #timers: readonly NodeJS.Timeout[] = []
  #isReading = false

  constructor(bus: RedisBus, log: Log, times = CLUSTER_TIMINGS) {
    this.#bus = bus
    this.#log = log
    this.#times = times
    this.#leases = new NodeLeases(times.leaseMs, () => performance.now())
    this.#commandLog = new CommandLog(bus, CLUSTER_TOPIC, times.leaseMs)
  }

  get size(): number {
    return 1 + this.#leases.nodes.length
  }

  async start(node: string, answers: SurveyHandlers, missedCommands: () => void): Promise<void> {
    this.#node = node
    this.#answers = answers
    this.#missedCommands = missedCommands
    const hear = (text: string): void => {
      const message = parseClusterMessage(text)
      if (message === null) this.#bus.malformedMessage()
      else this.#hear(message)
    }
    await Promise.all([
      this.#bus.listenToService(CLUSTER_TOPIC, hear),
      this.#bus.listenToService(nodeTopic(node), hear)
    ])
    await this.#commandLog.start(node)
    const greet = (): Promise<void> => this.#tell(CLUSTER_TOPIC, { kind: 'here', node, isNew: true })
    void greet()
    // A node that was cut off for longer than a lease knows no other node any more, and may have missed commands.
    this.#bus.whenChanged(() => {
      if (this.#bus.canReachServices) void greet()
      void this.#readCommands()
    })
    const { heartbeatMs } = this.#times
    const beat = (): void => {
      void this.#tell(CLUSTER_TOPIC, { kind: 'here', node, isNew: false })
      this.#remindMissing()
    }
    this.#timers = [
      setInterval(beat, heartbeatMs).unref(),
      setInterval(() => void this.#readCommands(), heartbeatMs / READINGS_PER_HEARTBEAT).unref()
    ]
  }

  async survey<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): Promise<readonly NodeResult<Q>[]> {
    const others = this.#send(this.#leases.nodes, null, survey, params)
    const own = await this.#answer(survey, params)
    const answers = own === null ? [] : [{ node: this.#node, answer: own.answer }]
    const received = [...(await others)].map(([node, answer]) => ({ node, answer }))
    return [...answers, ...received] as readonly NodeResult<Q>[]
  }

  async apply<C extends Command>(command: C, params: SurveyParams<C>): Promise<CommandResult<C>> {
    const id = ++this.#asks
    const message: Ask = { kind: 'ask', id, from: this.#node, to: null, question: command, params }
    const sent = new SentCommand(message, [this.#node, ...this.#leases.nodes])
    this.#asked.set(id, sent)
    await Promise.all([this.#applyHere(sent), this.#append(sent)])
    if (this.#isLogged(sent)) await sent.complete()
    const isConfirmed = this.#isLogged(sent) && sent.missing.size === 0
    if (isConfirmed) this.#asked.delete(id)
    else this.#keepTrying(sent)
    return { answers: [...sent.answers.values()] as SurveyResult<C>[], isConfirmed }
  }

  surveyNode<Q extends SurveyName>(
    node: string,
    survey: Q,
    params: SurveyParams<Q>
  ): MaybePromise<SurveyResult<Q> | null> {
    if (node === this.#node && this.#answers !== null) return this.#answers.handle(survey, params)
    if (!this.#leases.nodes.includes(node)) return null
    return this.#send([node], node, survey, params).then(
      (answers) => (answers.get(node) ?? null) as SurveyResult<Q> | null
    )
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    if (this.#node === '') return
    await this.#commandLog.leave().catch(() => undefined)
    await this.#tell(CLUSTER_TOPIC, { kind: 'gone', node: this.#node })
  }

  /** Settles when all of them have answered, or when it has taken too long. */
  async #send(
    nodes: readonly string[],
    to: string | null,
    survey: SurveyName,
    params: unknown
  ): Promise<ReadonlyMap<string, unknown>> {
    const asked = new PendingSurvey(nodes)
    if (nodes.length === 0) return asked.answers
    const id = ++this.#asks
    this.#asked.set(id, asked)
    const message = { kind: 'ask', id, from: this.#node, to, question: survey, params }
    const told = this.#bus.publishToService(CLUSTER_TOPIC, JSON.stringify(message))
    await asked.complete(told.then(() => new Promise<never>(() => undefined)))
    this.#asked.delete(id)
    return asked.answers
  }

  #hear(message: ClusterMessage): void {
    const { kind } = message
    if (kind === 'ask') {
      if (message.from !== this.#node && (message.to === null || message.to === this.#node)) void this.#reply(message)
      return
    }
    if (message.node === this.#node) return
    if (kind === 'gone') this.#left(message.node)
    else this.#leases.heard(message.node)
    if (kind === 'here' && message.isNew) this.#tell(CLUSTER_TOPIC, { kind: 'here', node: this.#node, isNew: false })
    if (kind === 'answer' || kind === 'failed') this.#take(message)
  }

  #take(message: Reply): void {
    const asked = this.#asked.get(message.id)
    if (message.kind === 'answer') asked?.answered(message.node, message.answer)
    // A command that failed is tried again.
    else if (!(asked instanceof SentCommand)) asked?.settled(message.node)
  }

  /** Its clients were sent away before it left. */
  #left(node: string): void {
    this.#leases.left(node)
    for (const [shard, nodes] of this.#leased)
      this.#leased.set(
        shard,
        nodes.filter((each) => each !== node)
      )
    for (const asked of this.#asked.values()) asked.settled(node)
  }

  async #reply(message: Ask): Promise<void> {
    const { id, from, question, params } = message
    const own = COMMANDS.has(question)
      ? await this.#applied.once(commandKey(message), () => this.#answer(question as SurveyName, params as never))
      : await this.#answer(question as SurveyName, params as never)
    const node = this.#node
    this.#tell(nodeTopic(from), own === null ? { kind: 'failed', id, node } : { kind: 'answer', id, node, ...own })
  }

  /** Null where this node cannot answer. */
  async #answer<Q extends SurveyName>(
    survey: Q,
    params: SurveyParams<Q>
  ): Promise<{ readonly answer: SurveyResult<Q> } | null> {
    try {
      if (this.#answers === null) return null
      return { answer: await this.#answers.handle(survey, params) }
    } catch {
      return null
    }
  }

  async #applyHere(sent: SentCommand): Promise<void> {
    const { question, params } = sent.message
    const own = await this.#applied.once(commandKey(sent.message), () =>
      this.#answer(question as SurveyName, params as never)
    )
    if (own !== null) sent.answered(this.#node, own.answer)
  }

  /** Appends the command to every log that does not have it; what fails is tried again, and the engine has said why. */
  async #append(sent: SentCommand): Promise<void> {
    const text = JSON.stringify(sent.message)
    const append = async (shard: Shard): Promise<void> => {
      const nodes = await this.#commandLog.append(shard, text)
      this.#leased.set(shard, nodes)
      for (const node of nodes) if (!sent.answers.has(node)) sent.missing.add(node)
      sent.logged.add(shard)
    }
    const lacking = this.#commandLog.shards.filter((shard) => shard.commands.isOpen && !sent.logged.has(shard))
    await Promise.all(lacking.map((shard) => append(shard).catch(() => undefined)))
    this.#settleGone(sent)
  }

  #isLogged({ logged }: SentCommand): boolean {
    const { shards } = this.#commandLog
    return shards.length > 0 && shards.every((shard) => logged.has(shard))
  }

  #isLive(node: string): boolean {
    if (node === this.#node || this.#leases.nodes.includes(node)) return true
    return this.#commandLog.shards.some((shard) => this.#leased.get(shard)?.includes(node))
  }

  #settleGone(sent: SentCommand): void {
    for (const node of sent.missing) if (!this.#isLive(node)) sent.settled(node)
  }

  #keepTrying(sent: SentCommand): void {
    this.#pending.set(sent.message.id, sent)
    this.#log.warn(
      { command: sent.message.question, nodes: [...sent.missing], isLogged: this.#isLogged(sent) },
      'unconfirmed command'
    )
    const [oldest] = this.#pending.keys()
    if (this.#pending.size <= MAX_PENDING || oldest === undefined) return
    this.#log.error({ command: this.#pending.get(oldest)?.message.question }, 'pending command dropped')
    this.#pending.delete(oldest)
    this.#asked.delete(oldest)
  }

  /** Renews the lease of this node, applies the commands that no message brought, and goes on with its own. */
  async #readCommands(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      const open = this.#commandLog.shards.filter(({ commands }) => commands.isOpen)
      // A server that does not answer is away; the engine has said so.
      await Promise.all(open.map((shard) => this.#readCommandsAt(shard).catch(() => undefined)))
      await Promise.all([...this.#pending.values()].map((sent) => this.#retry(sent)))
    } finally {
      this.#isReading = false
    }
  }

  async #readCommandsAt(shard: Shard): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const reading = await this.#commandLog.read(shard)
      hasMore = reading.hasMore
      this.#leased.set(shard, reading.nodes)
      for (const text of reading.commands) this.#applyLogged(text)
      if (reading.isReplaced) for (const { logged } of this.#pending.values()) logged.delete(shard)
      if (reading.hasGap) {
        this.#log.error({ redis: shard.name }, 'command log gap')
        this.#missedCommands()
      }
    }
  }

  #applyLogged(text: string): void {
    const message = parseClusterMessage(text)
    if (message?.kind !== 'ask' || !COMMANDS.has(message.question)) this.#bus.malformedMessage()
    else if (message.from !== this.#node && !this.#applied.has(commandKey(message))) void this.#reply(message)
  }

  async #retry(sent: SentCommand): Promise<void> {
    if (sent.missing.has(this.#node)) await this.#applyHere(sent)
    await this.#append(sent)
    if (!this.#isLogged(sent) || sent.missing.size > 0) return
    const { id, question } = sent.message
    this.#pending.delete(id)
    this.#asked.delete(id)
    this.#log.info({ command: question }, 'command confirmed')
  }

  /** Their answers may have been lost, or they have failed. */
  #remindMissing(): void {
    for (const { message, missing } of this.#pending.values()) {
      for (const to of missing) if (to !== this.#node) void this.#tell(CLUSTER_TOPIC, { ...message, to })
    }
  }

  /** Who cannot be told is left out; the engine has said why. */
  #tell(service: string, message: ClusterMessage): Promise<void> {
    return this.#bus.publishToService(service, JSON.stringify(message)).catch(() => undefined)
  }
}

const nodeTopic = (node: string): string => `${CLUSTER_TOPIC}:${node}`

const commandKey = ({ from, id }: Ask): string => `${from} ${id}`
