import type { Realtime } from '../realtime/realtime.js'
import type { RelayError } from '../realtime/relay-error.js'
import type { Subscription } from '../realtime/subscription.js'
import type { Publication, SubscribeOptions, SubscriptionState } from '../realtime/subscription-events.js'
import { createStore, type Store } from './store.js'

/** The state of a subscription for a component. */
export interface SubscriptionView<Data> {
  /** The data of the newest publication; null before the first one. */
  readonly data: Data | null
  readonly publication: Publication<Data> | null
  readonly state: SubscriptionState
  /** The last rejection or failed attempt; null while the subscription works. */
  readonly error: RelayError | null
}

interface SubscriptionListeners<Data> {
  /** Called for every publication. A component may show fewer of them, because frameworks combine updates. */
  readonly onPublication?: ((publication: Publication<Data>) => void) | undefined
  /** Publications were missed and cannot be recovered: load the data again. */
  readonly onGap?: (() => void) | undefined
}

export type UseSubscriptionOptions<Data> = SubscribeOptions & SubscriptionListeners<Data>

/** Follows a channel; null for none. `listeners` is called for each event, so that a component can replace them. */
export const subscriptionStore = <Data>(
  realtime: Realtime,
  channel: string | null,
  options: SubscribeOptions,
  listeners: () => SubscriptionListeners<Data>
): Store<SubscriptionView<Data>> => {
  const initial: SubscriptionView<Data> = {
    data: null,
    publication: null,
    state: channel === null ? 'unsubscribed' : 'subscribing',
    error: null
  }
  return createStore(initial, (setState) => {
    if (channel === null) return () => undefined
    // The caller declares the type of the data.
    const subscription = realtime.subscribe(channel, options) as unknown as Subscription<Data>
    const show = (publication: Publication<Data> | null): void =>
      setState({ publication, data: publication === null ? null : publication.data })
    const update = (): void => setState({ state: subscription.state, error: subscription.error })
    subscription.on('publication', (publication) => {
      show(publication)
      listeners().onPublication?.(publication)
    })
    subscription.on('gap', () => listeners().onGap?.())
    subscription.on('state', update)
    subscription.on('error', update)
    // Data of the previous user must not stay.
    const stopFollowing = realtime.on('reset', () => show(null))
    // Another component may have subscribed before.
    update()
    if (subscription.latest !== null) show(subscription.latest)
    return () => {
      stopFollowing()
      subscription.unsubscribe()
    }
  })
}
