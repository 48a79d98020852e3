import { type RefObject, useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import type { RequestOptions } from '../api/caller.js'
import type { LiveMapOptions } from '../realtime/live-map.js'
import type { ConnectionState } from '../realtime/relay-connection.js'
import type { SubscribeOptions } from '../realtime/subscription-events.js'
import type { SessionState } from '../session/session-state.js'
import { type CallRequest, type CallView, callStore } from '../stores/call-store.js'
import { connectionStore, sessionStore } from '../stores/client-stores.js'
import { type MapView, mapStore } from '../stores/map-store.js'
import { optionsKey } from '../stores/options-key.js'
import { type PresenceView, presenceStore } from '../stores/presence-store.js'
import type { Store } from '../stores/store.js'
import { type SubscriptionView, subscriptionStore, type UseSubscriptionOptions } from '../stores/subscription-store.js'
import { useClient, useProvided } from './context.js'

const useStore = <State>(store: Store<State>): State =>
  useSyncExternalStore(store.subscribe, store.getState, () => store.initial)

/** The value of the last render, for callbacks that outlive a render. */
const useLatest = <Value>(value: Value): RefObject<Value> => {
  const latest = useRef(value)
  useEffect(() => {
    latest.current = value
  })
  return latest
}

/** Creates a store when a dependency changes. `create` is none of them, because options are new objects at every render. */
const useStoreOf = <Created>(create: () => Created, dependencies: readonly unknown[]): Created =>
  // biome-ignore lint/correctness/useExhaustiveDependencies: the callers name what the store depends on
  useMemo(create, dependencies)

/** The current user and permissions. */
export const useSession = (): SessionState => {
  const { client, serverSession } = useProvided()
  return useStore(useStoreOf(() => sessionStore(client.session, serverSession), [client, serverSession]))
}

/** Whether the connection to the relay works. It opens with the first subscription. */
export const useConnectionState = (): ConnectionState => {
  const { realtime } = useClient()
  return useStore(useStoreOf(() => connectionStore(realtime), [realtime]))
}

/** Follows a channel while the component is mounted; null for none. */
export const useSubscription = <Data = unknown>(
  channel: string | null,
  { onPublication, onGap, ...options }: UseSubscriptionOptions<Data> = {}
): SubscriptionView<Data> => {
  const { realtime } = useClient()
  const listeners = useLatest({ onPublication, onGap })
  const store = useStoreOf(
    () => subscriptionStore<Data>(realtime, channel, options, () => listeners.current),
    [realtime, channel, optionsKey(options)]
  )
  return useStore(store)
}

/** The clients that are subscribed to a channel, while the component is mounted; null for none. The options are those of the subscription. */
export const usePresence = (
  channel: string | null,
  options: Omit<SubscribeOptions, 'joinLeave'> = {}
): PresenceView => {
  const { realtime } = useClient()
  const create = () => presenceStore(realtime, channel, options)
  return useStore(useStoreOf(create, [realtime, channel, optionsKey(options)]))
}

/** The entries of a map channel while the component is mounted; null for none. */
export const useMap = <Value = unknown>(channel: string | null, options: LiveMapOptions = {}): MapView<Value> => {
  const { realtime } = useClient()
  const create = () => mapStore<Value>(realtime, channel, options)
  return useStore(useStoreOf(create, [realtime, channel, optionsKey(options)]))
}

export type UseCallOptions = Pick<RequestOptions, 'query' | 'body'>

export interface UseCallResult<Result> extends CallView<Result> {
  /** Repeats the request; the data stays until the response. */
  readonly reload: () => void
}

export interface UseCall {
  /** Calls `request` at first and whenever one of the dependencies changes; null for no request. */
  <Result>(request: CallRequest<Result> | null, dependencies: readonly unknown[]): UseCallResult<Result>
  /** Requests a path at first and whenever it or an option changes; null for no request. */
  <Result = unknown>(method: string, path: string | null, options?: UseCallOptions): UseCallResult<Result>
}

/** Loads data while the component is mounted. Unmounting and changed dependencies abort the request. */
export const useCall: UseCall = <Result>(
  requestOrMethod: CallRequest<Result> | string | null,
  dependenciesOrPath: readonly unknown[] | string | null,
  options: UseCallOptions = {}
): UseCallResult<Result> => {
  const { call, session } = useClient()
  const path = typeof dependenciesOrPath === 'string' ? dependenciesOrPath : null
  const toPath = ({ signal }: { readonly signal: AbortSignal }): Promise<Result> =>
    call<Result>(String(requestOrMethod), path ?? '', { ...options, signal })
  const isPath = typeof requestOrMethod === 'string'
  const request = isPath ? path && toPath : requestOrMethod
  const dependencies = isPath
    ? [requestOrMethod, path, optionsKey(options)]
    : (dependenciesOrPath as readonly unknown[])
  const store = useStoreOf(() => callStore(session, request || null), [call, session, ...dependencies])
  return { ...useStore(store), reload: store.reload }
}
