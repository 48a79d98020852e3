import { type Caller, hasHistory, maySeeHistory, maySeePresence, type ResolvedChannel } from '../channel-names.js'
import type { Rate } from '../fan-out/rate-class.js'
import type { TagFilter } from '../fan-out/tag-filter.js'
import type { View } from '../fan-out/view.js'
import { type ChannelOptions, type MapOptions, NO_OVERRIDE, type ServerSubscription } from '../options.js'
import { NO_POSITION, type Position } from '../publication.js'
import type { Client } from '../session/client.js'

/** A subscription that passed all permission checks. */
export interface SubscribeRequest extends ServerSubscription {
  readonly channel: string
  readonly resolved: ResolvedChannel
  readonly isServerSide: boolean
  /** Milliseconds since 1970; 0 for never. */
  readonly expiresAt: number
  readonly recover: Position | null
  readonly positioned: boolean
  readonly recoverable: boolean
  readonly joinLeave: boolean
  readonly delta: boolean
  readonly filter: TagFilter | null
  /** Deliveries per second; null for all. */
  readonly rate: Rate | null
  /** Null for everything. */
  readonly view: View | null
  readonly failsUnrecovered: boolean
  /** Space for recovered publications in the reply. */
  readonly replySpace: ReplySpace
}

/** Space for recovered publications in one reply, shared by all subscriptions in it. */
export class ReplySpace {
  readonly #client: Client
  #usedBytes = 0

  constructor(client: Client) {
    this.#client = client
  }

  get bytesLeft(): number {
    return Math.max(0, this.#client.replyBytesLeft - this.#usedBytes)
  }

  use(bytes: number): void {
    this.#usedBytes += bytes
  }
}

/** The effective options: what was requested and what the namespace allows. */
export interface SubscriptionOptions {
  readonly presence: boolean
  readonly joinLeave: boolean
  readonly pushJoinLeave: boolean
  readonly positioned: boolean
  readonly recoverable: boolean
  /** Position to recover from; null for no recovery. */
  readonly since: Position | null
  /** Recover only the newest publication. */
  readonly fromCache: boolean
  /** Without a recovery the reply contains a snapshot. */
  readonly snapshot: boolean
  readonly delta: boolean
}

export const resolveOptions = (request: SubscribeRequest, caller: Caller): SubscriptionOptions => {
  const options = requestedOptions(request, caller)
  return request.view === null ? options : optionsWithView(options)
}

const requestedOptions = (request: SubscribeRequest, caller: Caller): SubscriptionOptions => {
  const { resolved, override } = request
  // Copied only if something changes, because this runs for every subscription.
  const options: ChannelOptions = override === NO_OVERRIDE ? resolved.options : { ...resolved.options, ...override }
  if (options.map !== null) return mapSubscriptionOptions(request, options, options.map, caller)
  const hasStream = hasHistory(options)
  const mayRecover = options.allowRecovery || maySeeHistory(options, caller)
  const recoverable = hasStream && (options.forceRecovery || (request.recoverable && mayRecover))
  const fromCache = options.recoveryMode === 'cache'
  const snapshot = options.snapshot && hasStream
  // A snapshot contains the newest publication.
  const since = request.recover ?? (fromCache && options.autoCacheRecover && !snapshot ? NO_POSITION : null)
  const mayPosition = request.positioned && (options.allowPositioning || mayRecover)
  // As in Centrifugo, also without a history. A client then starts again after every possible gap.
  const positioned = recoverable || options.forcePositioning || mayPosition
  return {
    presence: options.presence,
    joinLeave: options.joinLeave,
    pushJoinLeave: pushesJoinLeave(request, options, caller),
    positioned,
    recoverable,
    since: recoverable ? since : null,
    fromCache,
    snapshot,
    // A client with deltas has to detect missing publications.
    delta: request.delta && positioned && hasStream && options.allowedDeltaTypes.includes('fossil')
  }
}

/** A subscription with a view starts from what is in the view every time: it has no position to continue from. */
const optionsWithView = (options: SubscriptionOptions): SubscriptionOptions => ({
  ...options,
  positioned: false,
  recoverable: false,
  since: null,
  delta: false
})

/** Every client of a map relies on every change. */
const mapSubscriptionOptions = (
  request: SubscribeRequest,
  options: ChannelOptions,
  map: MapOptions,
  caller: Caller
): SubscriptionOptions => ({
  presence: options.presence,
  joinLeave: options.joinLeave,
  pushJoinLeave: pushesJoinLeave(request, options, caller),
  positioned: true,
  recoverable: hasPositions(map),
  since: request.recover,
  fromCache: false,
  snapshot: false,
  delta: request.delta && options.allowedDeltaTypes.includes('fossil')
})

/** Whether clients of a map have a position. Without one they start from an empty map each time. */
export const hasPositions = ({ mode }: MapOptions): boolean => mode !== 'ephemeral'

const pushesJoinLeave = (request: SubscribeRequest, options: ChannelOptions, caller: Caller): boolean =>
  options.joinLeave && (options.forcePushJoinLeave || (request.joinLeave && maySeePresence(options, caller)))
