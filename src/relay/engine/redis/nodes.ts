import type { Log } from '../../../shared/log.js'
import type { Cluster, CommandResult, NodeResult, SurveyHandler } from '../../core/engine.js'
import { type BackgroundDependencies, runInBackground } from '../../core/session/context.js'
import { CONTROL } from './keys.js'
import { isCommand, NodeCommands, type NodeOutcome } from './node-commands.js'
import {
  NodeLeases,
  type NodeMessage,
  nodeMessageJson,
  parseNodeMessage,
  type ReplyMessage,
  type RequestMessage
} from './node-messages.js'
import { PendingSurvey } from './pending-survey.js'
import type { ShardRouter } from './shard-router.js'

export interface NodeTimings {
  readonly heartbeatMs: number
  /** A node without a heartbeat for this long has left. */
  readonly leaseMs: number
}

export const NODE_TIMINGS: NodeTimings = { heartbeatMs: 3_000, leaseMs: 7_000 }
const LOG_READS_PER_HEARTBEAT = 3

export interface NodeClusterDependencies extends BackgroundDependencies {
  readonly log: Log
}

/**
 * The relay nodes that share a Redis and a key prefix. They announce themselves by heartbeats and send surveys and commands to
 * each other over pub/sub. Not to be confused with Redis Cluster, which `RedisClusterTopology` supports.
 */
export class RedisNodeCluster implements Cluster {
  readonly #router: ShardRouter
  readonly #background: BackgroundDependencies
  readonly #timings: NodeTimings
  readonly #leases: NodeLeases
  /** By message id. */
  readonly #surveys = new Map<number, PendingSurvey>()
  readonly #commands: NodeCommands
  #lastId = 0
  #node = ''
  #handler: SurveyHandler | null = null
  #missedCommands = (): void => undefined
  #timers: readonly NodeJS.Timeout[] = []

  constructor(router: ShardRouter, dependencies: NodeClusterDependencies, timings = NODE_TIMINGS) {
    this.#router = router
    this.#background = dependencies
    this.#timings = timings
    this.#leases = new NodeLeases(timings.leaseMs, () => performance.now())
    this.#commands = new NodeCommands({
      router,
      log: dependencies.log,
      leases: this.#leases,
      leaseMs: timings.leaseMs,
      nextId: () => ++this.#lastId,
      handle: ({ survey, params }) => this.#handle(survey, params),
      publish: (topic, message) => this.#publish(topic, message),
      reply: (message) => this.#reply(message),
      missedCommands: () => this.#missedCommands()
    })
  }

  get size(): number {
    return 1 + this.#leases.nodes.length
  }

  async start(node: string, handler: SurveyHandler, missedCommands: () => void): Promise<void> {
    this.#node = node
    this.#handler = handler
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
    await this.#commands.start(node)
    const announce = (): void => this.#publish(CONTROL.allNodesTopic, { kind: 'heartbeat', node, isNew: true })
    const readLog = (): void => runInBackground(this.#background, () => this.#commands.readLog())
    announce()
    // After a connection loss longer than a lease this node has no leases of others, and may have missed commands.
    this.#router.onReadinessChange(() => {
      if (this.#router.canPublishControl) announce()
      readLog()
    })
    const { heartbeatMs } = this.#timings
    const heartbeat = (): void => {
      this.#publish(CONTROL.allNodesTopic, { kind: 'heartbeat', node, isNew: false })
      this.#commands.repeat()
    }
    this.#timers = [
      setInterval(heartbeat, heartbeatMs).unref(),
      setInterval(readLog, heartbeatMs / LOG_READS_PER_HEARTBEAT).unref()
    ]
  }

  async survey(survey: string, params: unknown): Promise<readonly NodeResult[]> {
    const others = this.#sendSurvey(this.#leases.nodes, null, survey, params)
    const own = await this.#handle(survey, params)
    const results = new Map([...(own === null ? [] : [[this.#node, own.result] as const]), ...(await others)])
    return [...results].map(([node, result]) => ({ node, result }))
  }

  apply(command: string, params: unknown): Promise<CommandResult> {
    return this.#commands.apply(command, params)
  }

  async surveyNode(node: string, survey: string, params: unknown): Promise<unknown> {
    if (node === this.#node && this.#handler !== null) return this.#handler.handle(survey, params)
    if (!this.#leases.nodes.includes(node)) return null
    const results = await this.#sendSurvey([node], node, survey, params)
    return results.get(node) ?? null
  }

  /** Reads the lease from Redis: this node may not have received the first heartbeat of the other one yet. */
  async hasNode(node: string): Promise<boolean> {
    if (node === this.#node) return true
    const isLeased = await this.#commands.hasLease(node)
    if (isLeased && !this.#leases.nodes.includes(node)) this.#leases.renew(node)
    return isLeased
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    if (this.#node === '') return
    await this.#commands.leave().catch(() => undefined)
    await this.#send(CONTROL.allNodesTopic, { kind: 'leave', node: this.#node }).catch(() => undefined)
  }

  /** Resolves when all nodes have replied, or after the timeout. */
  async #sendSurvey(
    nodes: readonly string[],
    to: string | null,
    survey: string,
    params: unknown
  ): Promise<ReadonlyMap<string, unknown>> {
    const pending = new PendingSurvey(nodes)
    if (nodes.length === 0) return pending.results
    const id = ++this.#lastId
    this.#surveys.set(id, pending)
    const message: RequestMessage = { kind: 'request', id, from: this.#node, to, survey, params }
    const topic = to === null ? CONTROL.allNodesTopic : CONTROL.nodeTopic(to)
    await pending.complete(this.#router.publishControl(topic, nodeMessageJson(message)))
    this.#surveys.delete(id)
    return pending.results
  }

  #receive(message: NodeMessage): void {
    const { kind } = message
    if (kind === 'request') {
      if (message.from !== this.#node && (message.to === null || message.to === this.#node)) this.#reply(message)
      return
    }
    if (message.node === this.#node) return
    if (kind === 'leave') this.#nodeLeft(message.node)
    else this.#leases.renew(message.node)
    if (kind === 'heartbeat' && message.isNew)
      this.#publish(CONTROL.allNodesTopic, { kind: 'heartbeat', node: this.#node, isNew: false })
    if (kind === 'response' || kind === 'failure') this.#receiveReply(message)
  }

  #receiveReply(message: ReplyMessage): void {
    this.#commands.receiveReply(message)
    const pending = this.#surveys.get(message.id)
    if (message.kind === 'response') pending?.addResult(message.node, message.result)
    else pending?.stopWaitingFor(message.node)
  }

  #nodeLeft(node: string): void {
    this.#leases.remove(node)
    this.#commands.nodeLeft(node)
    for (const pending of this.#surveys.values()) pending.stopWaitingFor(node)
  }

  #reply(message: RequestMessage): void {
    const { id, from, survey, params } = message
    runInBackground(this.#background, async () => {
      const outcome = isCommand(message) ? await this.#commands.applyOnce(message) : await this.#handle(survey, params)
      const node = this.#node
      const reply: ReplyMessage =
        outcome === null ? { kind: 'failure', id, node } : { kind: 'response', id, node, result: outcome.result }
      await this.#send(CONTROL.nodeTopic(from), reply)
    })
  }

  /** Null if this node has no result. */
  async #handle(survey: string, params: unknown): Promise<NodeOutcome | null> {
    try {
      if (this.#handler === null) return null
      return { result: await this.#handler.handle(survey, params) }
    } catch {
      return null
    }
  }

  #publish(topic: string, message: NodeMessage): void {
    runInBackground(this.#background, () => this.#send(topic, message))
  }

  #send(topic: string, message: NodeMessage): Promise<void> {
    return this.#router.publishControl(topic, nodeMessageJson(message))
  }
}
