import type { CoreMetrics } from '../core-metrics.js'
import type { Broker } from '../engine.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { Channel } from './channel.js'

/** The subscription of a channel at the broker, which is made once. */
export class BrokerSubscription {
  #state: 'none' | 'active' | Promise<void> = 'none'

  get exists(): boolean {
    return this.#state !== 'none'
  }

  /** Concurrent callers share the pending attempt; after a failure the next call retries. */
  open(
    broker: Pick<Broker, 'subscribe'>,
    { name, namespace, options }: Pick<Channel, 'name' | 'namespace' | 'options'>,
    metrics: CoreMetrics
  ): MaybePromise<void> {
    if (this.#state !== 'none') return this.#state === 'active' ? undefined : this.#state
    metrics.engineAction(options.map === null ? 'broker_subscribe' : 'map_broker_subscribe', namespace)
    const opening = broker.subscribe(name)
    if (opening instanceof Promise) {
      this.#state = opening
      opening.then(
        () => this.#ended('active'),
        () => this.#ended('none')
      )
    } else this.#ended('active')
    return opening
  }

  #ended(state: 'none' | 'active'): void {
    this.#state = state
  }
}
