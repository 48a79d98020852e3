import type {
  HistoryOptions,
  HistoryResult,
  MapSubscription,
  PresenceResult,
  PresenceStatsResult,
  Subscription
} from 'centrifuge'
import { relayError } from './relay-error.js'

export const withRelayError = async <Result>(call: Promise<Result>): Promise<Result> => {
  try {
    return await call
  } catch (error) {
    throw relayError(error)
  }
}

/** A subscription on one connection. Its calls wait until the relay has accepted it, and reject with a `RelayError`. */
export class StreamSubscriber {
  readonly #subscription: Subscription
  /** Unsubscribes. */
  readonly close: () => void

  constructor(subscription: Subscription, close: () => void) {
    this.#subscription = subscription
    this.close = close
  }

  publish = (data: unknown): Promise<unknown> => withRelayError(this.#subscription.publish(data))

  presence = (): Promise<PresenceResult> => withRelayError(this.#subscription.presence())

  presenceStats = (): Promise<PresenceStatsResult> => withRelayError(this.#subscription.presenceStats())

  history = (options: HistoryOptions): Promise<HistoryResult> => withRelayError(this.#subscription.history(options))
}

/** The same for a map. */
export class MapSubscriber {
  readonly #subscription: MapSubscription
  readonly close: () => void

  constructor(subscription: MapSubscription, close: () => void) {
    this.#subscription = subscription
    this.close = close
  }

  publish = (key: string, data: unknown): Promise<unknown> => withRelayError(this.#subscription.publish(key, data))

  remove = (key: string): Promise<unknown> => withRelayError(this.#subscription.remove(key))
}
