import type { Presence } from '../../core/engine.js'
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

/** Presence of all nodes. Each entry has a lease that its node renews, so that the entries of a dead node expire. */
export class RedisPresence implements Presence {
  readonly #router: ShardRouter
  readonly #leaseMs: number
  readonly #states: RedisChannelStates
  /** The entries of this node by client, by channel. */
  readonly #own = new Map<string, Map<string, string>>()
  readonly #renewTimer: NodeJS.Timeout

  constructor(router: ShardRouter, leaseMs: number, states: RedisChannelStates) {
    this.#router = router
    this.#leaseMs = leaseMs
    this.#states = states
    states.renewPresence = () => this.#renew()
    this.#renewTimer = setInterval(() => this.#renew(), leaseMs / RENEWALS_PER_LEASE).unref()
    // After a connection loss the leases may have ended, or Redis may be empty.
    router.onReadinessChange(() => {
      if (router.isReady) this.#renew()
    })
  }

  async add(channel: string, client: string, user: string, info: string): Promise<void> {
    const entry = `${JSON.stringify(user)}\n${info}`
    const entries = this.#own.get(channel)
    if (entries === undefined) this.#own.set(channel, new Map([[client, entry]]))
    else entries.set(client, entry)
    await this.#add(channel, [client, entry], false)
  }

  async remove(channel: string, client: string): Promise<void> {
    const entries = this.#own.get(channel)
    entries?.delete(client)
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

  #renew(): void {
    for (const [channel, entries] of this.#own) {
      for (const batch of chunks([...entries], CLIENTS_PER_SCRIPT)) {
        // A failed renewal is repeated with the next one; the shard has logged the error.
        this.#add(channel, batch.flat(), true).catch(() => undefined)
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
