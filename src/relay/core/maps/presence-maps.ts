import { resolveChannel } from '../channel-names.js'
import { ReplyError } from '../codes.js'
import { EngineError, type MapWrite } from '../engine.js'
import type { ChannelOptions, SubscriptionType } from '../options.js'
import { TimeSlice } from '../time-slice.js'
import { asMap, type MapContext, PLAIN_WRITE, type ResolvedMap, removeFromMap, writeEntry } from './write-map.js'

/** As in Centrifugo. */
const RENEWAL_MS = 27_000
const RETRY_MS = 1_000

/** The client of a live subscription. */
export interface PresentClient {
  readonly id: string
  /** '' if it is anonymous. */
  readonly user: string
  /** JSON text. */
  readonly info: string
}

/** An entry that is renewed as long as the subscription exists. */
interface RenewedEntry {
  readonly channel: string
  readonly type: SubscriptionType
  readonly write: MapWrite
  /** Monotonic time. */
  renewAt: number
}

/** Whether subscriptions of a channel write their client or user into maps. */
export const hasPresenceMaps = ({ mapClientsPresencePrefix, mapUsersPresencePrefix }: ChannelOptions): boolean =>
  mapClientsPresencePrefix !== null || mapUsersPresencePrefix !== null

/**
 * Live subscriptions write their client, and its user, into maps that other clients can subscribe to. The entry of a client is
 * removed when its subscription ends; that of a user, who may have other subscriptions, expires.
 */
export class PresenceMaps {
  readonly #context: () => MapContext
  /** The subscription is only a key here. */
  readonly #entries = new Map<object, readonly RenewedEntry[]>()
  #nextRenewalAt = Number.POSITIVE_INFINITY
  #isRenewing = false

  /** A function, because the context has a reference to this object. */
  constructor(context: () => MapContext) {
    this.#context = context
  }

  /** Called when a subscription is live. The writes are sent before this returns, so a later removal follows them. */
  async add(subscription: object, channel: string, options: ChannelOptions, client: PresentClient): Promise<void> {
    const { mapClientsPresencePrefix, mapUsersPresencePrefix } = options
    const entries: RenewedEntry[] = []
    const addEntry = (prefix: string | null, type: SubscriptionType, key: string, info: string | null): void => {
      if (prefix === null || key === '') return
      const write: MapWrite = { ...PLAIN_WRITE, key, info, keyMode: 'if_new', renews: true }
      entries.push({ channel: `${prefix}${channel}`, type, write, renewAt: 0 })
    }
    addEntry(mapClientsPresencePrefix, 'map_clients', client.id, client.info)
    addEntry(mapUsersPresencePrefix, 'map_users', client.user, null)
    if (entries.length === 0) return
    this.#entries.set(subscription, entries)
    await Promise.all(entries.map((entry) => this.#write(entry)))
  }

  /** Called when a subscription has ended. */
  async remove(subscription: object): Promise<void> {
    const entries = this.#entries.get(subscription)
    if (entries === undefined) return
    this.#entries.delete(subscription)
    for (const { channel, type, write } of entries) {
      const resolved = type === 'map_clients' ? this.#resolve(channel, type) : null
      if (resolved === null) continue
      await removeFromMap(this.#context(), resolved, channel, { key: write.key, idempotencyKey: '' })
    }
  }

  /** Called periodically. Writes the entries again, in slices: there are as many as subscriptions. */
  async renew(): Promise<void> {
    const { monotonicMs } = this.#context()
    if (this.#isRenewing || monotonicMs() < this.#nextRenewalAt) return
    this.#isRenewing = true
    this.#nextRenewalAt = Number.POSITIVE_INFINITY
    const slice = new TimeSlice(monotonicMs)
    let writes: Promise<void>[] = []
    try {
      for (const entries of this.#entries.values()) {
        for (const entry of entries) {
          if (entry.renewAt > monotonicMs()) this.#scheduleRenewal(entry.renewAt)
          else writes.push(this.#write(entry))
        }
        if (!slice.isOverAfterStep) continue
        await Promise.all(writes)
        writes = []
        await slice.next()
      }
      await Promise.all(writes)
    } finally {
      this.#isRenewing = false
    }
  }

  /** Fails only with an unexpected error. An engine that is down is tried again. */
  async #write(entry: RenewedEntry): Promise<void> {
    const context = this.#context()
    const resolved = this.#resolve(entry.channel, entry.type)
    // A reload may have removed the map, and may add it again.
    const intervalMs = resolved === null ? RENEWAL_MS : Math.min(RENEWAL_MS, resolved.map.keyTtlMs / 3)
    this.#renewAfter(entry, intervalMs)
    if (resolved === null) return
    try {
      await writeEntry(context, resolved, entry.channel, entry.write)
    } catch (error) {
      this.#renewAfter(entry, RETRY_MS)
      if (!(error instanceof EngineError)) throw error
    }
  }

  #renewAfter(entry: RenewedEntry, ms: number): void {
    entry.renewAt = this.#context().monotonicMs() + ms
    this.#scheduleRenewal(entry.renewAt)
  }

  #scheduleRenewal(atMs: number): void {
    this.#nextRenewalAt = Math.min(this.#nextRenewalAt, atMs)
  }

  #resolve(channel: string, type: SubscriptionType): ResolvedMap | null {
    const resolved = resolveChannel(channel, this.#context().channelRules)
    if (resolved instanceof ReplyError || resolved.options.subscriptionType !== type) return null
    const map = asMap(resolved)
    return map instanceof ReplyError ? null : map
  }
}
