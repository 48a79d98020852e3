import { BoundedMap } from '../../../shared/bounded-map.js'
import { resolveChannel } from '../channel-names.js'
import { ERROR_TOO_MANY_REQUESTS, ReplyError } from '../codes.js'
import type { CommandLimit, LimitedCommand } from '../options.js'
import type { Client } from '../session/client.js'
import type { RelayContext } from '../session/context.js'

/** At least this number of buckets of users are in memory. Older ones count as full. */
const MIN_USER_BUCKETS = 100_000

/** The time at which each bucket will be full again. */
type Buckets = Pick<BoundedMap<string, number>, 'get' | 'set'>

const userBuckets = new WeakMap<RelayContext, Buckets>()
const clientBuckets = new WeakMap<Client, Buckets>()

const LIMITED: ReadonlySet<string> = new Set<LimitedCommand>(['connect', 'subscribe', 'publish', 'rpc', 'history'])

/**
 * Error 111 if the client or its user has used up a limit for this command, else null. `channel` is '' for a command without
 * one. A command that exceeds one limit is not counted by the others.
 */
export const limitError = (client: Client, method: string, channel: string): ReplyError | null => {
  const { clientOptions, channelRules } = client.context
  // The user is not known before the connect command was processed: see `connectLimitError`.
  if (!LIMITED.has(method) || method === 'connect') return null
  const resolved = channel === '' ? null : resolveChannel(channel, channelRules)
  const namespace = resolved === null || resolved instanceof ReplyError ? null : resolved
  const ofNamespace = namespace?.options.commandLimits ?? NO_LIMITS
  if (clientOptions.commandLimits.length === 0 && ofNamespace.length === 0) return null
  const applying = [
    ...bucketsFor(client, clientOptions.commandLimits, method, ''),
    ...bucketsFor(client, ofNamespace, method, namespace?.namespace ?? '')
  ]
  return take(applying, client.context.monotonicMs())
}

/** The same for the connect command of a user, before the client has one. */
export const connectLimitError = (client: Client, user: string): ReplyError | null => {
  const { commandLimits } = client.context.clientOptions
  if (commandLimits.length === 0) return null
  return take(bucketsFor(client, commandLimits, 'connect', '', user), client.context.monotonicMs())
}

const NO_LIMITS: readonly CommandLimit[] = []

interface Bucket {
  readonly buckets: Buckets
  readonly key: string
  readonly limit: CommandLimit
}

/** An anonymous client has no user, so limits by user count for its connection. */
const bucketsFor = (
  client: Client,
  limits: readonly CommandLimit[],
  method: string,
  namespace: string,
  user = client.user
): Bucket[] =>
  limits.flatMap((limit, index) => {
    if (!limit.commands.some((command) => command === method)) return []
    const isByUser = limit.by === 'user' && user !== ''
    const key = JSON.stringify([namespace, index, isByUser ? user : ''])
    return [{ limit, key, buckets: isByUser ? bucketsOfUsers(client.context) : bucketsOfClient(client) }]
  })

const bucketsOfUsers = (context: RelayContext): Buckets => {
  const existing = userBuckets.get(context)
  if (existing !== undefined) return existing
  const created = new BoundedMap<string, number>(MIN_USER_BUCKETS)
  userBuckets.set(context, created)
  return created
}

const bucketsOfClient = (client: Client): Buckets => {
  const existing = clientBuckets.get(client)
  if (existing !== undefined) return existing
  const created = new Map<string, number>()
  clientBuckets.set(client, created)
  return created
}

/** Sums of intervals are not exact. */
const ROUNDING_MS = 0.001

/** Takes one token from each bucket, or none if one of them is empty. */
const take = (applying: readonly Bucket[], now: number): ReplyError | null => {
  const next = applying.map(({ buckets, key, limit: { rate, intervalMs } }) => {
    const fullAt = Math.max(now, buckets.get(key) ?? 0) + intervalMs / rate
    return fullAt - now <= intervalMs + ROUNDING_MS ? fullAt : null
  })
  if (next.includes(null)) return ERROR_TOO_MANY_REQUESTS
  for (const [index, { buckets, key }] of applying.entries()) buckets.set(key, next[index] ?? 0)
  return null
}
