import type { UserConnection, UserConnections } from '../../core/engine.js'
import { type BackgroundDependencies, runInBackground } from '../../core/session/context.js'
import { stringListReply } from './connection.js'
import { USER_CONNECTION_ADD } from './lease-scripts.js'
import type { ShardRouter } from './shard-router.js'

/** Long, because the core checks the connections of a dead node when a user reaches the limit. The lease removes unused keys. */
const LEASE_MS = 60 * 60 * 1000
const RENEW_AFTER_MS = LEASE_MS / 3
const RENEW_INTERVAL_MS = 1_000
/** Renewing all connections of a node at once would block Redis for other commands. */
const MAX_RENEWALS_PER_INTERVAL = 1_000

interface OwnConnection {
  readonly connection: UserConnection
  renewedAt: number
}

/** Counts the connections of each user at all nodes that share a Redis. */
export class RedisUserConnections implements UserConnections {
  readonly #router: ShardRouter
  readonly #background: BackgroundDependencies
  /** The connections of this node by client. */
  readonly #own = new Map<string, OwnConnection>()
  readonly #renewTimer: NodeJS.Timeout

  constructor(router: ShardRouter, background: BackgroundDependencies) {
    this.#router = router
    this.#background = background
    this.#renewTimer = setInterval(() => this.#renew(), RENEW_INTERVAL_MS).unref()
    // Redis may be empty after a restart.
    router.onReadinessChange(() => {
      if (router.isReady) for (const own of this.#own.values()) own.renewedAt = Number.NEGATIVE_INFINITY
    })
  }

  /** If Redis is down, the connection is counted once Redis is ready again, unless it is removed before. */
  async add(connection: UserConnection, limit: number): Promise<readonly UserConnection[] | null> {
    const { user, client } = connection
    this.#own.set(client, { connection, renewedAt: performance.now() })
    const members = await this.#add(connection, limit).catch((error) => {
      const own = this.#own.get(client)
      if (own !== undefined) own.renewedAt = Number.NEGATIVE_INFINITY
      throw error
    })
    if (members.length === 0) return null
    this.#own.delete(client)
    // Also those of this node: Redis may have been down when one of them was removed.
    return members.map((member) => parseMember(user, member))
  }

  async remove({ user, node, client }: UserConnection): Promise<void> {
    this.#own.delete(client)
    await this.#router.send(user, 'zrem', [this.#router.keys.user(user), formatMember(node, client)])
  }

  close(): void {
    clearInterval(this.#renewTimer)
  }

  #renew(): void {
    if (!this.#router.isReady) return
    const now = performance.now()
    let renewals = 0
    for (const own of this.#own.values()) {
      if (own.renewedAt > now - RENEW_AFTER_MS) continue
      if (++renewals > MAX_RENEWALS_PER_INTERVAL) return
      own.renewedAt = now
      runInBackground(this.#background, () => this.#add(own.connection, Number.POSITIVE_INFINITY))
    }
  }

  /** Returns the connections that use up the limit, or an empty list if this connection was added. */
  async #add({ user, node, client }: UserConnection, limit: number): Promise<readonly string[]> {
    const args = [String(LEASE_MS), Number.isFinite(limit) ? String(limit) : '', formatMember(node, client)]
    const keys = [this.#router.keys.user(user)]
    return stringListReply(await this.#router.runScript(user, USER_CONNECTION_ADD, keys, () => args))
  }
}

const formatMember = (node: string, client: string): string => `${node} ${client}`

const parseMember = (user: string, member: string): UserConnection => {
  const [node = '', client = ''] = member.split(' ')
  return { user, node, client }
}
