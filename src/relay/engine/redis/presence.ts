import type { Presence } from '../../core/engine.js'
import { type BackgroundDependencies, runInBackground } from '../../core/session/context.js'
import { chunks } from './batching.js'
import type { RedisChannelStates } from './channel-states.js'
import { listReply, stringListReply } from './connection.js'
import { presenceKeys } from './keys.js'
import {
  PRESENCE_ADD,
  PRESENCE_ADD_WITH_STATE,
  PRESENCE_COUNT,
  PRESENCE_READ,
  PRESENCE_REMOVE,
  PRESENCE_REMOVE_WITH_STATE
} from './presence-scripts.js'
import type { ShardRouter } from './shard-router.js'

/** A little more than two, so that one failed renewal does not end the lease. */
const RENEWALS_PER_LEASE = 60 / 27
const CLIENTS_PER_SCRIPT = 500
/** Renewals are spread over the interval in steps of this length; a short lease has shorter ones. */
const STEP_MS = 100
const MIN_STEPS_PER_LEASE = 20
/** Scripts that a step may run to catch up, so that a node with few channels needs no whole interval for it. */
const MIN_CATCH_UP_PER_STEP = 100

/** Presence of all nodes. Each entry has a lease that its node renews, so that the entries of a dead node expire. */
export class RedisPresence implements Presence {
  readonly #router: ShardRouter
  readonly #leaseMs: number
  readonly #states: RedisChannelStates
  readonly #background: BackgroundDependencies
  readonly #stepMs: number
  /** The entries of this node by client, by channel. The channel that was renewed last is the last one. */
  readonly #own = new Map<string, Map<string, string>>()
  /** Number of entries. */
  #size = 0
  #renewals = this.#inTurn()
  /** Renewals that are due, in scripts. */
  #due = 0
  #steppedAt = performance.now()
  readonly #renewTimer: NodeJS.Timeout

  constructor(router: ShardRouter, leaseMs: number, states: RedisChannelStates, background: BackgroundDependencies) {
    this.#router = router
    this.#leaseMs = leaseMs
    this.#states = states
    this.#background = background
    this.#stepMs = Math.min(STEP_MS, leaseMs / MIN_STEPS_PER_LEASE)
    states.renewPresence = () => this.#renewAll()
    this.#renewTimer = setInterval(() => this.#renewDue(), this.#stepMs).unref()
    // After a connection loss the leases may have ended, or Redis may be empty.
    router.onReadinessChange(() => {
      if (router.isReady) this.#renewAll()
    })
  }

  async add(channel: string, client: string, user: string, info: string): Promise<void> {
    const entry = `${JSON.stringify(user)}\n${info}`
    const entries = this.#own.get(channel) ?? new Map<string, string>()
    if (entries.size === 0) this.#own.set(channel, entries)
    if (!entries.has(client)) this.#size++
    entries.set(client, entry)
    await this.#add(channel, [client, entry], false)
  }

  async remove(channel: string, client: string): Promise<void> {
    const entries = this.#own.get(channel)
    if (entries?.delete(client)) this.#size--
    if (entries?.size === 0) this.#own.delete(channel)
    const proxy = this.#states.proxyOf(channel)
    if (proxy === null) {
      await this.#router.runScript(channel, PRESENCE_REMOVE, this.#keys(channel), () => [client])
      return
    }
    const args = [client, String(this.#states.vacatedDelayMs)]
    const reply = await this.#router.runScript(
      channel,
      PRESENCE_REMOVE_WITH_STATE,
      this.#keysWithState(channel),
      () => args
    )
    this.#states.presenceWritten(channel, proxy, reply)
  }

  async read(channel: string): Promise<ReadonlyMap<string, string>> {
    const reply = await this.#router.runScript(channel, PRESENCE_READ, this.#keys(channel), () => [])
    return new Map(chunks(stringListReply(reply), 2).map(([client = '', entry = '']) => [client, infoOf(entry)]))
  }

  async count(channel: string): Promise<{ readonly clients: number; readonly users: number }> {
    const reply = await this.#router.runScript(channel, PRESENCE_COUNT, this.#keys(channel), () => [])
    const [clients, users] = listReply(reply)
    return { clients: Number(clients), users: Number(users) }
  }

  close(): void {
    clearInterval(this.#renewTimer)
  }

  /** All entries are due. Renewing them at once would occupy Redis and this node. */
  #renewAll(): void {
    this.#due = this.#scripts
  }

  /** Scripts that renew all entries: one for each channel, and more for its clients that one script cannot take. */
  get #scripts(): number {
    return this.#own.size + this.#size / CLIENTS_PER_SCRIPT
  }

  /** Called in every step. A failed renewal is repeated in the next interval. */
  #renewDue(): void {
    const now = performance.now()
    const perMs = this.#scripts / (this.#leaseMs / RENEWALS_PER_LEASE)
    this.#due = Math.min(this.#scripts, this.#due + perMs * (now - this.#steppedAt))
    this.#steppedAt = now
    // Twice the usual number, so that even the longest delay is caught up within an interval.
    const most = Math.max(MIN_CATCH_UP_PER_STEP, 2 * perMs * this.#stepMs)
    for (let left = Math.min(this.#due, most); left >= 1; left--) {
      const next = this.#renewals.next()
      if (next.done) {
        this.#renewals = this.#inTurn()
        return
      }
      this.#due--
      const [channel, entries] = next.value
      runInBackground(this.#background, () => this.#add(channel, entries, true))
    }
  }

  /** The entries of one script after the other, the channel that was renewed longest ago first. Ends when there are none. */
  *#inTurn(): Generator<readonly [channel: string, entries: readonly string[]], void> {
    // A channel that becomes the last one is visited again.
    for (const [channel, entries] of this.#own) {
      this.#own.delete(channel)
      this.#own.set(channel, entries)
      for (const clients of chunks([...entries.keys()], CLIENTS_PER_SCRIPT)) {
        // A client may have left since the first script.
        const present = clients.flatMap((client) => {
          const entry = entries.get(client)
          return entry === undefined ? [] : [client, entry]
        })
        if (present.length > 0) yield [channel, present]
      }
    }
  }

  async #add(channel: string, entries: readonly string[], isRenewal: boolean): Promise<void> {
    const args = [String(this.#leaseMs), ...entries]
    const proxy = this.#states.proxyOf(channel)
    if (proxy === null) await this.#router.runScript(channel, PRESENCE_ADD, this.#keys(channel), () => args)
    else {
      const keys = this.#keysWithState(channel)
      const reply = await this.#router.runScript(channel, PRESENCE_ADD_WITH_STATE, keys, () => args)
      this.#states.presenceWritten(channel, proxy, reply, isRenewal)
    }
  }

  #keys(channel: string): readonly string[] {
    return this.#keysWithState(channel).slice(0, 2)
  }

  #keysWithState(channel: string): readonly string[] {
    return presenceKeys(this.#router.keys.channel(channel))
  }
}

const infoOf = (entry: string): string => entry.slice(entry.indexOf('\n') + 1)
