import type { Log } from '../../../shared/log.js'
import type {
  Cluster,
  ClusterCommand,
  ClusterCommandResult,
  NodeResult,
  SurveyHandlers,
  SurveyName,
  SurveyParams,
  SurveyResult
} from '../../core/survey.js'
import { AppliedCommands, CommandLog } from './command-log.js'
import { CONTROL } from './keys.js'
import {
  NodeLeases,
  type NodeMessage,
  nodeMessageJson,
  parseNodeMessage,
  type ReplyMessage,
  type RequestMessage
} from './node-messages.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'

/** Long enough for a busy node. A dead node costs this much until its lease has ended. */
const REPLY_TIMEOUT_MS = 2_000

export interface NodeTimings {
  readonly heartbeatMs: number
  /** A node without a heartbeat for this long has left. */
  readonly leaseMs: number
}

export const NODE_TIMINGS: NodeTimings = { heartbeatMs: 3_000, leaseMs: 7_000 }
const LOG_READS_PER_HEARTBEAT = 3
/** Unconfirmed commands that this node retries. Nodes that have not applied the others find them in the log. */
const MAX_PENDING_COMMANDS = 1_000

const COMMANDS: ReadonlySet<string> = new Set<ClusterCommand>(['disconnect', 'unsubscribe', 'subscribe', 'refresh'])

interface Outcome {
  readonly result: unknown
}

/** A survey without all its replies. */
class PendingSurvey {
  /** The nodes whose replies are missing. */
  readonly missing: Set<string>
  readonly results = new Map<string, unknown>()
  #resolve = (): void => undefined

  constructor(nodes: Iterable<string>) {
    this.missing = new Set(nodes)
  }

  addResult(node: string, result: unknown): void {
    this.results.set(node, result)
    this.stopWaitingFor(node)
  }

  stopWaitingFor(node: string): void {
    this.missing.delete(node)
    if (this.missing.size === 0) this.#resolve()
  }

  /** Resolves when no reply is missing, after the timeout, or when `sent` fails. */
  async complete(sent: Promise<void>): Promise<void> {
    if (this.missing.size === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#resolve = resolve
      timer = setTimeout(resolve, REPLY_TIMEOUT_MS)
      sent.catch(resolve)
    })
    clearTimeout(timer)
  }
}

/** A command of this node that not every live node has applied yet. */
class PendingCommand extends PendingSurvey {
  readonly message: RequestMessage
  /** The control shards whose log has the command. */
  readonly loggedAt = new Set<Shard>()

  constructor(message: RequestMessage, nodes: Iterable<string>) {
    super(nodes)
    this.message = message
  }
}

/**
 * The relay nodes that share a Redis and a key prefix. They announce themselves by heartbeats and send surveys and commands to
 * each other over pub/sub. Not to be confused with Redis Cluster, which `RedisClusterTopology` supports.
 */
export class RedisNodeCluster implements Cluster {
  readonly #router: ShardRouter
  readonly #log: Log
  readonly #timings: NodeTimings
  readonly #leases: NodeLeases
  /** By message id. */
  readonly #surveys = new Map<number, PendingSurvey>()
  readonly #commandLog: CommandLog
  readonly #applied = new AppliedCommands<Outcome>()
  /** Unconfirmed commands by message id. */
  readonly #pendingCommands = new Map<number, PendingCommand>()
  /** The nodes with a lease in the command log of each server. */
  readonly #leasedNodes = new Map<Shard, readonly string[]>()
  #lastId = 0
  #node = ''
  #handlers: SurveyHandlers | null = null
  #missedCommands = (): void => undefined
  #timers: readonly NodeJS.Timeout[] = []
  #isReadingLog = false

  constructor(router: ShardRouter, log: Log, timings = NODE_TIMINGS) {
    this.#router = router
    this.#log = log
    this.#timings = timings
    this.#leases = new NodeLeases(timings.leaseMs, () => performance.now())
    this.#commandLog = new CommandLog(router, timings.leaseMs)
  }

  get size(): number {
    return 1 + this.#leases.nodes.length
  }

  async start(node: string, handlers: SurveyHandlers, missedCommands: () => void): Promise<void> {
    this.#node = node
    this.#handlers = handlers
    this.#missedCommands = missedCommands
    const receive = (text: string): void => {
      const message = parseNodeMessage(text)
      if (message === null) this.#router.malformedMessage()
      else this.#receive(message)
    }
    await Promise.all([
      this.#router.subscribeControl(CONTROL.allNodesTopic, receive),
      this.#router.subscribeControl(CONTROL.nodeTopic(node), receive)
    ])
    await this.#commandLog.start(node)
    const announce = (): Promise<void> => this.#publish(CONTROL.allNodesTopic, { kind: 'heartbeat', node, isNew: true })
    void announce()
    // After a connection loss longer than a lease this node has no leases of others, and may have missed commands.
    this.#router.onReadinessChange(() => {
      if (this.#router.canPublishControl) void announce()
      void this.#readLog()
    })
    const { heartbeatMs } = this.#timings
    const heartbeat = (): void => {
      void this.#publish(CONTROL.allNodesTopic, { kind: 'heartbeat', node, isNew: false })
      this.#repeatCommands()
    }
    this.#timers = [
      setInterval(heartbeat, heartbeatMs).unref(),
      setInterval(() => void this.#readLog(), heartbeatMs / LOG_READS_PER_HEARTBEAT).unref()
    ]
  }

  async survey<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): Promise<readonly NodeResult<Q>[]> {
    const others = this.#sendSurvey(this.#leases.nodes, null, survey, params)
    const own = await this.#handle(survey, params)
    const results = new Map([...(own === null ? [] : [[this.#node, own.result] as const]), ...(await others)])
    // The results come from relays, which respond to a survey with its result type.
    return [...results].map(([node, result]) => ({ node, result: result as SurveyResult<Q> }))
  }

  async apply<C extends ClusterCommand>(command: C, params: SurveyParams<C>): Promise<ClusterCommandResult<C>> {
    const id = ++this.#lastId
    const message: RequestMessage = { kind: 'request', id, from: this.#node, to: null, survey: command, params }
    const pending = new PendingCommand(message, [this.#node, ...this.#leases.nodes])
    this.#surveys.set(id, pending)
    await Promise.all([this.#applyHere(pending), this.#append(pending)])
    if (this.#isLogged(pending)) await pending.complete(Promise.resolve())
    const isConfirmed = this.#isLogged(pending) && pending.missing.size === 0
    if (isConfirmed) this.#surveys.delete(id)
    else this.#retryLater(pending)
    // As in `survey`.
    return { results: [...pending.results.values()] as SurveyResult<C>[], isConfirmed }
  }

  async surveyNode<Q extends SurveyName>(
    node: string,
    survey: Q,
    params: SurveyParams<Q>
  ): Promise<SurveyResult<Q> | null> {
    if (node === this.#node && this.#handlers !== null) return this.#handlers.handle(survey, params)
    if (!this.#leases.nodes.includes(node)) return null
    const results = await this.#sendSurvey([node], node, survey, params)
    // As in `survey`.
    return (results.get(node) ?? null) as SurveyResult<Q> | null
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    if (this.#node === '') return
    await this.#commandLog.leave().catch(() => undefined)
    await this.#publish(CONTROL.allNodesTopic, { kind: 'leave', node: this.#node })
  }

  /** Resolves when all nodes have replied, or after the timeout. */
  async #sendSurvey(
    nodes: readonly string[],
    to: string | null,
    survey: SurveyName,
    params: unknown
  ): Promise<ReadonlyMap<string, unknown>> {
    const pending = new PendingSurvey(nodes)
    if (nodes.length === 0) return pending.results
    const id = ++this.#lastId
    this.#surveys.set(id, pending)
    const message: RequestMessage = { kind: 'request', id, from: this.#node, to, survey, params }
    await pending.complete(this.#router.publishControl(CONTROL.allNodesTopic, nodeMessageJson(message)))
    this.#surveys.delete(id)
    return pending.results
  }

  #receive(message: NodeMessage): void {
    const { kind } = message
    if (kind === 'request') {
      if (message.from !== this.#node && (message.to === null || message.to === this.#node)) void this.#reply(message)
      return
    }
    if (message.node === this.#node) return
    if (kind === 'leave') this.#nodeLeft(message.node)
    else this.#leases.renew(message.node)
    if (kind === 'heartbeat' && message.isNew)
      void this.#publish(CONTROL.allNodesTopic, { kind: 'heartbeat', node: this.#node, isNew: false })
    if (kind === 'response' || kind === 'failure') this.#receiveReply(message)
  }

  #receiveReply(message: ReplyMessage): void {
    const pending = this.#surveys.get(message.id)
    if (message.kind === 'response') pending?.addResult(message.node, message.result)
    // A command that failed is sent again; a survey is not.
    else if (!(pending instanceof PendingCommand)) pending?.stopWaitingFor(message.node)
  }

  /** The node has closed its clients before it left, so no command has to wait for it. */
  #nodeLeft(node: string): void {
    this.#leases.remove(node)
    for (const [shard, nodes] of this.#leasedNodes)
      this.#leasedNodes.set(
        shard,
        nodes.filter((each) => each !== node)
      )
    for (const pending of this.#surveys.values()) pending.stopWaitingFor(node)
  }

  async #reply(message: RequestMessage): Promise<void> {
    const { id, from, survey } = message
    const outcome = COMMANDS.has(survey) ? await this.#applyOnce(message) : await this.#handleRequest(message)
    const node = this.#node
    const reply: ReplyMessage =
      outcome === null ? { kind: 'failure', id, node } : { kind: 'response', id, node, result: outcome.result }
    void this.#publish(CONTROL.nodeTopic(from), reply)
  }

  #applyOnce(message: RequestMessage): Promise<Outcome | null> {
    return this.#applied.once(commandKey(message), () => this.#handleRequest(message))
  }

  #handleRequest({ survey, params }: RequestMessage): Promise<Outcome | null> {
    // Names and parameters come from a relay, which has validated them. An unknown name throws in the handlers.
    return this.#handle(survey as SurveyName, params as SurveyParams<SurveyName>)
  }

  /** Null if this node has no result. */
  async #handle<Q extends SurveyName>(survey: Q, params: SurveyParams<Q>): Promise<Outcome | null> {
    try {
      if (this.#handlers === null) return null
      return { result: await this.#handlers.handle(survey, params) }
    } catch {
      return null
    }
  }

  async #applyHere(pending: PendingCommand): Promise<void> {
    const outcome = await this.#applyOnce(pending.message)
    if (outcome !== null) pending.addResult(this.#node, outcome.result)
  }

  /** Appends the command to every log that does not have it. A failure is retried later; the shard has logged it. */
  async #append(pending: PendingCommand): Promise<void> {
    const text = nodeMessageJson(pending.message)
    const append = async (shard: Shard): Promise<void> => {
      const nodes = await this.#commandLog.append(shard, text)
      this.#leasedNodes.set(shard, nodes)
      for (const node of nodes) if (!pending.results.has(node)) pending.missing.add(node)
      pending.loggedAt.add(shard)
    }
    const shards = this.#commandLog.shards.filter((shard) => shard.commands.isOpen && !pending.loggedAt.has(shard))
    await Promise.all(shards.map((shard) => append(shard).catch(() => undefined)))
    for (const node of pending.missing) if (!this.#isLive(node)) pending.stopWaitingFor(node)
  }

  #isLogged({ loggedAt }: PendingCommand): boolean {
    const { shards } = this.#commandLog
    return shards.length > 0 && shards.every((shard) => loggedAt.has(shard))
  }

  #isLive(node: string): boolean {
    if (node === this.#node || this.#leases.nodes.includes(node)) return true
    return this.#commandLog.shards.some((shard) => this.#leasedNodes.get(shard)?.includes(node))
  }

  #retryLater(pending: PendingCommand): void {
    this.#pendingCommands.set(pending.message.id, pending)
    this.#log.warn(
      { command: pending.message.survey, nodes: [...pending.missing], isLogged: this.#isLogged(pending) },
      'unconfirmed command'
    )
    const [oldest] = this.#pendingCommands.keys()
    if (this.#pendingCommands.size <= MAX_PENDING_COMMANDS || oldest === undefined) return
    this.#log.error({ command: this.#pendingCommands.get(oldest)?.message.survey }, 'pending command dropped')
    this.#pendingCommands.delete(oldest)
    this.#surveys.delete(oldest)
  }

  /** Renews the lease of this node, applies commands whose message it missed, and retries its own. */
  async #readLog(): Promise<void> {
    if (this.#isReadingLog) return
    this.#isReadingLog = true
    try {
      const open = this.#commandLog.shards.filter(({ commands }) => commands.isOpen)
      // The shard has logged the error of a failed read.
      await Promise.all(open.map((shard) => this.#readLogAt(shard).catch(() => undefined)))
      await Promise.all([...this.#pendingCommands.values()].map((pending) => this.#retry(pending)))
    } finally {
      this.#isReadingLog = false
    }
  }

  async #readLogAt(shard: Shard): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const batch = await this.#commandLog.read(shard)
      hasMore = batch.hasMore
      this.#leasedNodes.set(shard, batch.nodes)
      for (const text of batch.commands) this.#applyLogged(text)
      if (batch.isReplaced) for (const { loggedAt } of this.#pendingCommands.values()) loggedAt.delete(shard)
      if (batch.hasGap) {
        this.#log.error({ redis: shard.name }, 'command log gap')
        this.#missedCommands()
      }
    }
  }

  #applyLogged(text: string): void {
    const message = parseNodeMessage(text)
    if (message?.kind !== 'request' || !COMMANDS.has(message.survey)) this.#router.malformedMessage()
    else if (message.from !== this.#node && !this.#applied.has(commandKey(message))) void this.#reply(message)
  }

  async #retry(pending: PendingCommand): Promise<void> {
    if (pending.missing.has(this.#node)) await this.#applyHere(pending)
    await this.#append(pending)
    if (!this.#isLogged(pending) || pending.missing.size > 0) return
    const { id, survey } = pending.message
    this.#pendingCommands.delete(id)
    this.#surveys.delete(id)
    this.#log.info({ command: survey }, 'command confirmed')
  }

  /** Sends unconfirmed commands again to the nodes that failed or whose reply was lost. */
  #repeatCommands(): void {
    for (const { message, missing } of this.#pendingCommands.values()) {
      for (const to of missing) if (to !== this.#node) void this.#publish(CONTROL.allNodesTopic, { ...message, to })
    }
  }

  /** A failure is ignored: the shard has logged it. */
  #publish(topic: string, message: NodeMessage): Promise<void> {
    return this.#router.publishControl(topic, nodeMessageJson(message)).catch(() => undefined)
  }
}

const commandKey = ({ from, id }: RequestMessage): string => `${from} ${id}`
