import { type ComputedRef, computed, type MaybeRefOrGetter, toValue, type WatchSource } from 'vue'
import type { RequestOptions } from '../api/caller.js'
import type { LiveMapOptions } from '../realtime/live-map.js'
import type { ConnectionState } from '../realtime/relay-connection.js'
import type { SubscribeOptions } from '../realtime/subscription-events.js'
import type { SessionState } from '../session/session-state.js'
import { type CallRequest, type CallStore, type CallView, callStore } from '../stores/call-store.js'
import { connectionStore, sessionStore } from '../stores/client-stores.js'
import { type MapView, mapStore } from '../stores/map-store.js'
import { optionsKey } from '../stores/options-key.js'
import { type PresenceView, presenceStore } from '../stores/presence-store.js'
import { type SubscriptionView, subscriptionStore, type UseSubscriptionOptions } from '../stores/subscription-store.js'
import { followStore } from './follow-store.js'
import { useClient, useProvided } from './provide-client.js'

/** Each field of a state as a ref. */
export type Refs<State> = { readonly [Name in keyof State]: ComputedRef<State[Name]> }

const refsOf = <State extends object>(state: { readonly value: State }): Refs<State> =>
  // The states have the same fields all the time; `fromEntries` loses their names.
  Object.fromEntries(
    Object.keys(state.value).map((name) => [name, computed(() => state.value[name as keyof State])])
  ) as Refs<State>

/** For stores that never change. */
const NEVER = (): null => null

/** The current user and permissions. */
export const useSession = (): Refs<SessionState> => {
  const { client, serverSession } = useProvided()
  const { session } = client
  return refsOf(followStore(NEVER, () => sessionStore(session, serverSession ?? session.state)))
}

/** Whether the connection to the relay works. It opens with the first subscription. */
export const useConnectionState = (): ComputedRef<ConnectionState> => {
  const { realtime } = useClient()
  const state = followStore(NEVER, () => connectionStore(realtime))
  return computed(() => state.value)
}

/** Changes when the channel or an option changes. */
const channelKey =
  (channel: MaybeRefOrGetter<string | null>, options: MaybeRefOrGetter<object>): WatchSource<string> =>
  () =>
    `${optionsKey(toValue(options))} ${toValue(channel) ?? ''}`

/** Follows a channel until the scope ends; null for none. */
export const useSubscription = <Data = unknown>(
  channel: MaybeRefOrGetter<string | null>,
  options: MaybeRefOrGetter<UseSubscriptionOptions<Data>> = {}
): Refs<SubscriptionView<Data>> => {
  const { realtime } = useClient()
  const create = () => {
    const { onPublication, onGap, ...subscribeOptions } = toValue(options)
    return subscriptionStore<Data>(realtime, toValue(channel), subscribeOptions, () => toValue(options))
  }
  return refsOf(followStore(channelKey(channel, options), create))
}

/** The clients that are subscribed to a channel, until the scope ends; null for none. The options are those of the subscription. */
export const usePresence = (
  channel: MaybeRefOrGetter<string | null>,
  options: MaybeRefOrGetter<Omit<SubscribeOptions, 'joinLeave'>> = {}
): Refs<PresenceView> => {
  const { realtime } = useClient()
  const create = () => presenceStore(realtime, toValue(channel), toValue(options))
  return refsOf(followStore(channelKey(channel, options), create))
}

/** The entries of a map channel until the scope ends; null for none. */
export const useMap = <Value = unknown>(
  channel: MaybeRefOrGetter<string | null>,
  options: MaybeRefOrGetter<LiveMapOptions> = {}
): Refs<MapView<Value>> => {
  const { realtime } = useClient()
  const create = () => mapStore<Value>(realtime, toValue(channel), toValue(options))
  return refsOf(followStore(channelKey(channel, options), create))
}

export type UseCallOptions = Pick<RequestOptions, 'query' | 'body'>

export interface UseCallResult<Result> extends Refs<CallView<Result>> {
  /** Repeats the request; the data stays until the response. */
  readonly reload: () => void
}

export interface UseCall {
  /** Calls `request` at first and whenever one of the sources changes. */
  <Result>(request: CallRequest<Result>, sources?: readonly WatchSource[]): UseCallResult<Result>
  /** Requests a path at first and whenever it or an option changes; null for no request. */
  <Result = unknown>(
    method: string,
    path: MaybeRefOrGetter<string | null>,
    options?: MaybeRefOrGetter<UseCallOptions>
  ): UseCallResult<Result>
}

/** Loads data until the scope ends. Its end and changed sources abort the request. */
export const useCall: UseCall = <Result>(
  requestOrMethod: CallRequest<Result> | string,
  sourcesOrPath: readonly WatchSource[] | MaybeRefOrGetter<string | null> = [],
  options: MaybeRefOrGetter<UseCallOptions> = {}
): UseCallResult<Result> => {
  const { call, session } = useClient()
  let store: CallStore<Result> | null = null
  const follow = (source: WatchSource | readonly WatchSource[], request: () => CallRequest<Result> | null) =>
    refsOf(followStore(source, () => (store = callStore(session, request()))))
  const reload = (): void => store?.reload()
  if (typeof requestOrMethod !== 'string')
    // The first form of `UseCall`.
    return { ...follow([NEVER, ...(sourcesOrPath as readonly WatchSource[])], () => requestOrMethod), reload }
  const path = sourcesOrPath as MaybeRefOrGetter<string | null> // the second form
  const request = (): CallRequest<Result> | null => {
    const address = toValue(path)
    return address === null
      ? null
      : ({ signal }) => call<Result>(requestOrMethod, address, { ...toValue(options), signal })
  }
  return { ...follow(channelKey(path, options), request), reload }
}
