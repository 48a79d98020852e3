import type { Presence } from '../../core/broker.js'
import type { RedisBus } from './bus.js'
import { inBatches } from './engine.js'
import { PRESENCE_ADD, PRESENCE_COUNT, PRESENCE_READ, PRESENCE_REMOVE } from './scripts.js'

/** Twice within a lease, and some more: one that fails is made up for by the next. */
const RENEWALS_PER_LEASE = 60 / 27
const CLIENTS_PER_RENEWAL = 500

/** Who listens, on all nodes. Every entry has a lease that its node renews, so that a node that dies leaves no ghosts. */
export class RedisPresence implements Presence {
  readonly #bus: RedisBus
  readonly #leaseMs: number
  /** Those of this node: entries by client, by channel. */
  readonly #own = new Map<string, Map<string, string>>()
  readonly #renewing: NodeJS.Timeout

  constructor(bus: RedisBus, leaseMs: number) {
    this.#bus = bus
    this.#leaseMs = leaseMs
    this.#renewing = setInterval(() => this.#renew(), leaseMs / RENEWALS_PER_LEASE).unref()
    // Who was away for long, or has forgotten everything, is told at once.
    bus.whenChanged(() => {
      if (bus.isReady) this.#renew()
    })
  }

  async add(channel: string, client: string, user: string, info: string): Promise<void> {
    const entry = `${JSON.stringify(user)}\n${info}`
    const entries = this.#own.get(channel)
    if (entries === undefined) this.#own.set(channel, new Map([[client, entry]]))
    else entries.set(client, entry)
    await this.#add(channel, [client, entry])
  }

  async remove(channel: string, client: string): Promise<void> {
    const entries = this.#own.get(channel)
    entries?.delete(client)
    if (entries?.size === 0) this.#own.delete(channel)
    await this.#bus.runScript(channel, PRESENCE_REMOVE, this.#keys(channel), () => [client])
  }

  async read(channel: string): Promise<ReadonlyMap<string, string>> {
    const answer = await this.#bus.runScript(channel, PRESENCE_READ, this.#keys(channel), () => [])
    return new Map(
      inBatches(answer as readonly string[], 2).map(([client = '', entry = '']) => [client, infoOf(entry)])
    )
  }

  async count(channel: string): Promise<{ readonly clients: number; readonly users: number }> {
    const answer = await this.#bus.runScript(channel, PRESENCE_COUNT, this.#keys(channel), () => [])
    const [clients, users] = answer as [number, number]
    return { clients, users }
  }

  close(): void {
    clearInterval(this.#renewing)
  }

  #renew(): void {
    for (const [channel, entries] of this.#own) {
      for (const batch of inBatches([...entries], CLIENTS_PER_RENEWAL)) {
        // One that fails is renewed the next time; the engine has told why.
        this.#add(channel, batch.flat()).catch(() => undefined)
      }
    }
  }

  #add(channel: string, entries: readonly string[]): Promise<unknown> {
    return this.#bus.runScript(channel, PRESENCE_ADD, this.#keys(channel), () => [String(this.#leaseMs), ...entries])
  }

  #keys(channel: string): readonly string[] {
    const name = this.#bus.names.channel(channel)
    return [`${name}presence`, `${name}leases`]
  }
}

const infoOf = (entry: string): string => entry.slice(entry.indexOf('\n') + 1)
