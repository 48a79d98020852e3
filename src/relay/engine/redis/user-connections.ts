import { EngineError } from '../../core/broker.js'
import type { UserConnection, UserConnections } from '../../core/user-connections.js'
import type { RedisBus } from './bus.js'
import { USER_CONNECTION_ADD } from './scripts.js'

/** What a node that died has counted is found by those who meet the limit; the lease only keeps Redis clean. */
const LEASE_MS = 60 * 60 * 1000
const RENEW_AFTER_MS = LEASE_MS / 3
const RENEW_EVERY_MS = 1_000
/** Those of a whole node at once would keep Redis from its other work. */
const RENEWALS_AT_ONCE = 1_000

interface Own {
  readonly connection: UserConnection
  renewedAt: number
}

/** The connections of each user at all nodes that share a Redis. */
export class RedisUserConnections implements UserConnections {
  readonly #bus: RedisBus
  /** Those of this node by client, the one that was renewed longest ago first. */
  readonly #own = new Map<string, Own>()
  readonly #renewing: NodeJS.Timeout

  constructor(bus: RedisBus) {
    this.#bus = bus
    this.#renewing = setInterval(() => this.#renew(), RENEW_EVERY_MS).unref()
    // A Redis that comes back may have forgotten everything.
    bus.whenChanged(() => {
      if (bus.isReady) for (const own of this.#own.values()) own.renewedAt = Number.NEGATIVE_INFINITY
    })
  }

  /** Where Redis is away the connection is counted when it is back, unless it is removed before. */
  async add(connection: UserConnection, limit: number): Promise<readonly UserConnection[] | null> {
    const { user, client, node } = connection
    this.#own.set(client, { connection, renewedAt: performance.now() })
    const held = await this.#add(connection, limit).catch((error) => {
      const own = this.#own.get(client)
      if (own !== undefined) own.renewedAt = Number.NEGATIVE_INFINITY
      throw error
    })
    if (held.length === 0) return null
    this.#own.delete(client)
    const others = held.map((member) => connectionOf(user, member)).filter((each) => each.node !== node)
    return others
  }

  async remove({ user, node, client }: UserConnection): Promise<void> {
    this.#own.delete(client)
    await this.#bus.send(user, 'zrem', [this.#bus.names.user(user), memberOf(node, client)])
  }

  close(): void {
    clearInterval(this.#renewing)
  }

  #renew(): void {
    if (!this.#bus.isReady) return
    const now = performance.now()
    let renewals = 0
    for (const [client, { connection, renewedAt }] of this.#own) {
      if (renewedAt > now - RENEW_AFTER_MS || ++renewals > RENEWALS_AT_ONCE) return
      this.#own.delete(client)
      this.#own.set(client, { connection, renewedAt: now })
      this.#add(connection, Number.POSITIVE_INFINITY).catch((error) => {
        if (!(error instanceof EngineError)) throw error
      })
    }
  }

  /** The connections that fill the limit; none if this one is counted. */
  async #add({ user, node, client }: UserConnection, limit: number): Promise<readonly string[]> {
    const args = [String(LEASE_MS), Number.isFinite(limit) ? String(limit) : '', memberOf(node, client)]
    const held = await this.#bus.runScript(user, USER_CONNECTION_ADD, [this.#bus.names.user(user)], () => args)
    return held as readonly string[]
  }
}

const memberOf = (node: string, client: string): string => `${node} ${client}`

const connectionOf = (user: string, member: string): UserConnection => {
  const [node = '', client = ''] = member.split(' ')
  return { user, node, client }
}
