import { resolveChannel } from '../channel-names.js'
import { ERROR_TOO_MANY_REQUESTS, ReplyError } from '../codes.js'
import type { Bucket } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import type { CommandLimit, LimitedCommand } from '../options.js'
import type { Client } from '../session/client.js'
import { TokenBuckets } from '../token-buckets.js'

const clientBuckets = new WeakMap<Client, TokenBuckets>()

const LIMITED: ReadonlySet<string> = new Set<LimitedCommand>(['connect', 'subscribe', 'publish', 'rpc', 'history'])

const NO_LIMITS: readonly CommandLimit[] = []

/**
 * Error 111 if the client or its user has used up a limit for this command, else null. `channel` is '' for a command without
 * one. A command that exceeds one limit is not counted by the others. Only limits by user of a shared engine make a promise.
 */
export const limitError = (client: Client, method: string, channel: string): MaybePromise<ReplyError | null> => {
  const { clientOptions, channelRules } = client.context
  // The user is not known before the connect command was processed: see `connectLimitError`.
  if (!LIMITED.has(method) || method === 'connect') return null
  const resolved = channel === '' ? null : resolveChannel(channel, channelRules)
  const namespace = resolved === null || resolved instanceof ReplyError ? null : resolved
  const ofNamespace = namespace?.options.commandLimits ?? NO_LIMITS
  if (clientOptions.commandLimits.length === 0 && ofNamespace.length === 0) return null
  return take(client, [
    ...limitsOf(clientOptions.commandLimits, method, ALL_NAMESPACES),
    ...limitsOf(ofNamespace, method, namespace?.namespace ?? '')
  ])
}

/** The same for the connect command, once the user is known. */
export const connectLimitError = (client: Client): MaybePromise<ReplyError | null> => {
  const { commandLimits } = client.context.clientOptions
  return commandLimits.length === 0 ? null : take(client, limitsOf(commandLimits, 'connect', ALL_NAMESPACES))
}

/** Not the name of a namespace. */
const ALL_NAMESPACES = '*'

interface AppliedLimit {
  readonly by: CommandLimit['by']
  /** For operators, such as `chat: publish, 5 per 1 s for each user`. */
  readonly text: string
  readonly bucket: Bucket
}

/** The name of a bucket contains its limit, so a limit that is changed by a reload begins with a full bucket. */
const limitsOf = (limits: readonly CommandLimit[], method: string, scope: string): AppliedLimit[] =>
  limits.flatMap(({ commands, by, rate, intervalMs }) => {
    if (!commands.some((command) => command === method)) return []
    const name = `${scope}:${commands.join('+')}:${rate}/${intervalMs}`
    const prefix = scope === ALL_NAMESPACES ? '' : `${scope || 'no namespace'}: `
    const text = `${prefix}${commands.join(', ')}, ${rate} per ${intervalMs / 1000} s for each ${by}`
    return [{ by, text, bucket: { name, rate, intervalMs } }]
  })

/** An anonymous client has no user, so limits by user count for its connection. */
const take = (client: Client, limits: readonly AppliedLimit[]): MaybePromise<ReplyError | null> => {
  const { user, context } = client
  const isByUser = ({ by }: AppliedLimit): boolean => by === 'user' && user !== ''
  const ofUser = limits.filter(isByUser).map(({ bucket }) => bucket)
  const ofClient = limits.filter((limit) => !isByUser(limit)).map(({ bucket }) => bucket)
  const rejected = (isUser: boolean): ReplyError => {
    // If several apply, the buckets do not tell which of them is empty.
    const texts = limits.filter((limit) => isByUser(limit) === isUser).map(({ text }) => text)
    client.limitReached(texts.join(' or '))
    return ERROR_TOO_MANY_REQUESTS
  }
  if (ofClient.length > 0 && !bucketsOf(client).take(ofClient, context.monotonicMs())) return rejected(false)
  if (ofUser.length === 0) return null
  return after(context.userRates.take(user, ofUser), (isTaken) => {
    if (isTaken) return null
    if (ofClient.length > 0) bucketsOf(client).putBack(ofClient)
    return rejected(true)
  })
}

const bucketsOf = (client: Client): TokenBuckets => {
  const existing = clientBuckets.get(client)
  if (existing !== undefined) return existing
  const created = new TokenBuckets(new Map())
  clientBuckets.set(client, created)
  return created
}
