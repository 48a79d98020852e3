import type { Log } from '../../../shared/log.js'
import type { CommandResult } from '../../core/engine.js'
import type { ClusterCommand } from '../../core/node-requests.js'
import { AppliedCommands, CommandLog } from './command-log.js'
import { CONTROL } from './keys.js'
import {
  type NodeLeases,
  type NodeMessage,
  nodeMessageJson,
  parseNodeMessage,
  type ReplyMessage,
  type RequestMessage
} from './node-messages.js'
import { PendingSurvey } from './pending-survey.js'
import type { Shard } from './shard.js'
import type { ShardRouter } from './shard-router.js'

/** Unconfirmed commands that this node retries. Nodes that have not applied the others find them in the log. */
const MAX_PENDING_COMMANDS = 1_000

const CLUSTER_COMMANDS: ReadonlySet<string> = new Set<ClusterCommand>([
  'disconnect',
  'unsubscribe',
  'subscribe',
  'refresh',
  'invalidateTokens'
])

export const isCommand = ({ survey }: RequestMessage): boolean => CLUSTER_COMMANDS.has(survey)

/** The result of a survey or command at this node. */
export interface NodeOutcome {
  readonly result: unknown
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

export interface NodeCommandsDependencies {
  readonly router: ShardRouter
  readonly log: Log
  /** The other nodes. */
  readonly leases: NodeLeases
  readonly leaseMs: number
  nextId(): number
  /** Runs a command at this node. Null if it failed. */
  handle(message: RequestMessage): Promise<NodeOutcome | null>
  publish(topic: string, message: NodeMessage): void
  /** Runs a command that was found in the log, and replies to its sender. */
  reply(message: RequestMessage): void
  /** Commands were dropped from the log before this node has read them. */
  missedCommands(): void
}

/**
 * Commands that every node must apply. A command is published and appended to a log, which every node reads once a second. It is
 * confirmed when all nodes with a lease have applied it; until then its sender repeats it.
 */
export class NodeCommands {
  readonly #dependencies: NodeCommandsDependencies
  readonly #commandLog: CommandLog
  readonly #applied = new AppliedCommands<NodeOutcome>()
  /** The commands of this node that wait for replies, by message id. */
  readonly #unconfirmed = new Map<number, PendingCommand>()
  /** Those that `apply` returned without a confirmation. This node repeats them. */
  readonly #repeated = new Map<number, PendingCommand>()
  /** The nodes with a lease in the command log of each server. */
  readonly #leasedNodes = new Map<Shard, readonly string[]>()
  #node = ''
  #isReadingLog = false

  constructor(dependencies: NodeCommandsDependencies) {
    this.#dependencies = dependencies
    this.#commandLog = new CommandLog(dependencies.router, dependencies.leaseMs)
  }

  async start(node: string): Promise<void> {
    this.#node = node
    await this.#commandLog.start(node)
  }

  async apply(command: string, params: unknown): Promise<CommandResult> {
    const { leases, nextId } = this.#dependencies
    const id = nextId()
    const message: RequestMessage = { kind: 'request', id, from: this.#node, to: null, survey: command, params }
    const pending = new PendingCommand(message, [this.#node, ...leases.nodes])
    this.#unconfirmed.set(id, pending)
    await Promise.all([this.#applyHere(pending), this.#append(pending)])
    if (this.#isLogged(pending)) await pending.complete(Promise.resolve())
    const isConfirmed = this.#isLogged(pending) && pending.missing.size === 0
    if (isConfirmed) this.#unconfirmed.delete(id)
    else this.#repeatLater(pending)
    return { results: [...pending.results.values()], isConfirmed }
  }

  /** Applies a command of another node, however often it arrives. Null if it failed. */
  applyOnce(message: RequestMessage): Promise<NodeOutcome | null> {
    return this.#applied.once(commandKey(message), () => this.#dependencies.handle(message))
  }

  /** A command that failed is sent again. */
  receiveReply(message: ReplyMessage): void {
    if (message.kind === 'response') this.#unconfirmed.get(message.id)?.addResult(message.node, message.result)
  }

  /** The node has closed its clients before it left, so no command has to wait for it. */
  nodeLeft(node: string): void {
    for (const [shard, nodes] of this.#leasedNodes)
      this.#leasedNodes.set(
        shard,
        nodes.filter((each) => each !== node)
      )
    for (const pending of this.#unconfirmed.values()) pending.stopWaitingFor(node)
  }

  /** Renews the lease of this node, applies commands whose message it missed, and retries its own. */
  async readLog(): Promise<void> {
    if (this.#isReadingLog) return
    this.#isReadingLog = true
    try {
      const open = this.#commandLog.shards.filter(({ commands }) => commands.isOpen)
      // The shard has logged the error of a failed read.
      await Promise.all(open.map((shard) => this.#readLogAt(shard).catch(() => undefined)))
      await Promise.all([...this.#repeated.values()].map((pending) => this.#retry(pending)))
    } finally {
      this.#isReadingLog = false
    }
  }

  /** Sends unconfirmed commands again to the nodes that failed or whose reply was lost. */
  repeat(): void {
    for (const { message, missing } of this.#repeated.values()) {
      for (const to of missing)
        if (to !== this.#node) this.#dependencies.publish(CONTROL.nodeTopic(to), { ...message, to })
    }
  }

  hasLease(node: string): Promise<boolean> {
    return this.#commandLog.hasLease(node)
  }

  /** Ends the lease of this node. */
  async leave(): Promise<void> {
    await this.#commandLog.leave()
  }

  async #applyHere(pending: PendingCommand): Promise<void> {
    const outcome = await this.applyOnce(pending.message)
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
    if (node === this.#node || this.#dependencies.leases.nodes.includes(node)) return true
    return this.#commandLog.shards.some((shard) => this.#leasedNodes.get(shard)?.includes(node))
  }

  #repeatLater(pending: PendingCommand): void {
    this.#repeated.set(pending.message.id, pending)
    this.#dependencies.log.warn(
      { command: pending.message.survey, nodes: [...pending.missing], isLogged: this.#isLogged(pending) },
      'unconfirmed command'
    )
    const [oldest] = this.#repeated.keys()
    if (this.#repeated.size <= MAX_PENDING_COMMANDS || oldest === undefined) return
    this.#dependencies.log.error({ command: this.#repeated.get(oldest)?.message.survey }, 'pending command dropped')
    this.#repeated.delete(oldest)
    this.#unconfirmed.delete(oldest)
  }

  async #readLogAt(shard: Shard): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const batch = await this.#commandLog.read(shard)
      hasMore = batch.hasMore
      this.#leasedNodes.set(shard, batch.nodes)
      for (const text of batch.commands) this.#applyLogged(text)
      if (batch.isReplaced) for (const { loggedAt } of this.#repeated.values()) loggedAt.delete(shard)
      if (batch.hasGap) {
        this.#dependencies.log.error({ redis: shard.name }, 'command log gap')
        this.#dependencies.missedCommands()
      }
    }
  }

  #applyLogged(text: string): void {
    const message = parseNodeMessage(text)
    if (message?.kind !== 'request' || !isCommand(message)) this.#dependencies.router.malformedMessage()
    else if (message.from !== this.#node && !this.#applied.has(commandKey(message))) this.#dependencies.reply(message)
  }

  async #retry(pending: PendingCommand): Promise<void> {
    if (pending.missing.has(this.#node)) await this.#applyHere(pending)
    await this.#append(pending)
    if (!this.#isLogged(pending) || pending.missing.size > 0) return
    const { id, survey } = pending.message
    this.#repeated.delete(id)
    this.#unconfirmed.delete(id)
    this.#dependencies.log.info({ command: survey }, 'command confirmed')
  }
}

const commandKey = ({ from, id }: RequestMessage): string => `${from} ${id}`
