import type { Answer, Answers, Fleet, NodeAnswer, Params, Question } from '../../core/fleet.js'
import type { MaybePromise } from '../../core/maybe-promise.js'
import type { Bus } from './bus.js'
import { type FleetMessage, readFleetMessage } from './fleet-messages.js'
import { Neighbours } from './neighbours.js'

/** Enough for a node that is busy; one that is gone costs so much once, until its lease has ended. */
const ANSWER_WITHIN_MS = 2_000

export interface FleetTimes {
  readonly heartbeatMs: number
  /** After so long without a heartbeat a node has left. */
  readonly leaseMs: number
}

export const FLEET_TIMES: FleetTimes = { heartbeatMs: 3_000, leaseMs: 7_000 }

const EVERYBODY = 'fleet'

/** A question on its way: whose answers are missing, and what becomes of those that come. */
interface Asked {
  readonly missing: Set<string>
  readonly answers: { readonly node: string; readonly answer: unknown }[]
  readonly done: () => void
}

/** Relays that share a Redis and a prefix. They tell each other that they are there, and ask each other by messages. */
export class RedisFleet implements Fleet {
  readonly #bus: Bus
  readonly #times: FleetTimes
  readonly #neighbours: Neighbours
  readonly #asked = new Map<number, Asked>()
  #asks = 0
  #node = ''
  #answers: Answers | null = null
  #beating: NodeJS.Timeout | null = null

  constructor(bus: Bus, times = FLEET_TIMES) {
    this.#bus = bus
    this.#times = times
    this.#neighbours = new Neighbours(times.leaseMs, () => performance.now())
  }

  get size(): number {
    return 1 + this.#neighbours.nodes.length
  }

  get isWhole(): boolean {
    return this.#bus.canTell
  }

  async start(node: string, answers: Answers): Promise<void> {
    this.#node = node
    this.#answers = answers
    const hear = (text: string): void => {
      const message = readFleetMessage(text)
      if (message === null) this.#bus.strange()
      else this.#hear(message)
    }
    await Promise.all([this.#bus.hear(EVERYBODY, hear), this.#bus.hear(mailOf(node), hear)])
    const greet = (): Promise<void> => this.#tell(EVERYBODY, { kind: 'here', node, isNew: true })
    void greet()
    // Who was cut off for longer than a lease knows nobody any more.
    this.#bus.whenChanged(() => {
      if (this.#bus.canTell) void greet()
    })
    this.#beating = setInterval(
      () => this.#tell(EVERYBODY, { kind: 'here', node, isNew: false }),
      this.#times.heartbeatMs
    ).unref()
  }

  async ask<Q extends Question>(question: Q, params: Params<Q>): Promise<readonly NodeAnswer<Q>[]> {
    const others = this.#send(new Set(this.#neighbours.nodes), null, question, params)
    const own = await this.#answer(question, params)
    const answers = own === null ? [] : [{ node: this.#node, answer: own.answer }]
    return [...answers, ...(await others)] as readonly NodeAnswer<Q>[]
  }

  askOne<Q extends Question>(node: string, question: Q, params: Params<Q>): MaybePromise<Answer<Q> | null> {
    if (node === this.#node && this.#answers !== null) return this.#answers.to(question, params)
    if (!this.#neighbours.nodes.includes(node)) return null
    return this.#send(new Set([node]), node, question, params).then(
      ([answered]) => (answered?.answer ?? null) as Answer<Q> | null
    )
  }

  async close(): Promise<void> {
    if (this.#beating !== null) clearInterval(this.#beating)
    if (this.#node !== '') await this.#tell(EVERYBODY, { kind: 'gone', node: this.#node })
  }

  /** Settles when all of them have answered, or when it has taken too long. */
  async #send(missing: Set<string>, to: string | null, question: Question, params: unknown): Promise<Asked['answers']> {
    if (missing.size === 0) return []
    const id = ++this.#asks
    const answers: Asked['answers'] = []
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((done) => {
      timer = setTimeout(done, ANSWER_WITHIN_MS)
      this.#asked.set(id, { missing, answers, done })
      this.#bus.tell(EVERYBODY, JSON.stringify({ kind: 'ask', id, from: this.#node, to, question, params })).catch(done)
    })
    clearTimeout(timer)
    this.#asked.delete(id)
    return answers
  }

  #hear(message: FleetMessage): void {
    const { kind } = message
    if (kind === 'ask') {
      if (message.from !== this.#node && (message.to === null || message.to === this.#node)) void this.#reply(message)
      return
    }
    if (message.node === this.#node) return
    if (kind === 'gone') this.#neighbours.left(message.node)
    else this.#neighbours.heard(message.node)
    if (kind === 'here' && message.isNew) this.#tell(EVERYBODY, { kind: 'here', node: this.#node, isNew: false })
    if (kind === 'answer' || kind === 'failed') this.#take(message)
  }

  #take(message: Extract<FleetMessage, { readonly id: number; readonly node: string }>): void {
    const asked = this.#asked.get(message.id)
    // Nobody asked, or it is too late, or it has answered before.
    if (asked === undefined || !asked.missing.delete(message.node)) return
    if (message.kind === 'answer') asked.answers.push({ node: message.node, answer: message.answer })
    if (asked.missing.size === 0) asked.done()
  }

  async #reply({ id, from, question, params }: Extract<FleetMessage, { readonly kind: 'ask' }>): Promise<void> {
    const own = await this.#answer(question as Question, params as never)
    const node = this.#node
    this.#tell(mailOf(from), own === null ? { kind: 'failed', id, node } : { kind: 'answer', id, node, ...own })
  }

  /** Null where this node cannot answer. */
  async #answer<Q extends Question>(question: Q, params: Params<Q>): Promise<{ readonly answer: Answer<Q> } | null> {
    try {
      if (this.#answers === null) return null
      return { answer: await this.#answers.to(question, params) }
    } catch {
      return null
    }
  }

  /** Who cannot be told is left out; the engine has said why. */
  #tell(service: string, message: FleetMessage): Promise<void> {
    return this.#bus.tell(service, JSON.stringify(message)).catch(() => undefined)
  }
}

const mailOf = (node: string): string => `${EVERYBODY}:${node}`
