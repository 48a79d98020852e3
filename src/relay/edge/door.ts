import type { IncomingMessage } from 'node:http'
import type { RelayConfig } from '../config.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { ClientOptions } from '../core/options.js'
import type { Admission, Refusal } from './admission.js'
import { type ClientAddress, clientAddress } from './client-address.js'
import { type OriginCheck, originCheck } from './origin.js'
import type { Rejections } from './rejections.js'

export interface DoorWatch {
  connectionRefused(reason: 'origin' | Refusal): void
}

/** Who has come in, and what to call when they have gone. */
export interface Entered {
  readonly address: string
  leave(): void
}

const REFUSALS: Readonly<Record<Refusal, number>> = { limit: 503, rate: 503, address: 429 }

/** Decides who may connect, for all transports alike: where the page is from, and how many there are already. */
export class Door {
  readonly #admission: Admission
  readonly #watch: DoorWatch
  readonly #rejections: Rejections
  #originCheck: OriginCheck
  #addressOf: ClientAddress
  #limits: ClientOptions
  #isClosed = false

  constructor(config: RelayConfig, admission: Admission, watch: DoorWatch, rejections: Rejections) {
    this.#watch = watch
    this.#rejections = rejections
    this.#admission = admission
    this.#originCheck = originCheck(config.allowedOrigins)
    this.#addressOf = clientAddress(config.trustedProxies)
    this.#limits = config.client
  }

  configure(config: RelayConfig): void {
    this.#originCheck = originCheck(config.allowedOrigins)
    this.#addressOf = clientAddress(config.trustedProxies)
    this.#limits = config.client
  }

  /** Nobody else comes in. */
  close(): void {
    this.#isClosed = true
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  allowsOrigin(request: IncomingMessage): boolean {
    const { origin, host } = request.headers
    if (this.#originCheck(origin, host)) return true
    this.#watch.connectionRefused('origin')
    this.#rejections.origin(request, this.#addressOf(request))
    return false
  }

  addressOf(request: IncomingMessage): string {
    return this.#addressOf(request)
  }

  /** The status to refuse with, or who came in. The page's origin is checked too. */
  enter(request: IncomingMessage): MaybePromise<number | Entered> {
    if (!this.allowsOrigin(request)) return 403
    const address = this.#addressOf(request)
    if (this.#isClosed) return this.#refuse('limit')
    return after(this.#admission.enter(address, this.#limits), (refusal) => {
      if (refusal !== null) return this.#refuse(refusal)
      if (!this.#isClosed) return { address, leave: () => this.#admission.leave(address) }
      // Closed while the admission was asked.
      this.#admission.leave(address)
      return this.#refuse('limit')
    })
  }

  #refuse(refusal: Refusal): number {
    this.#watch.connectionRefused(refusal)
    return REFUSALS[refusal]
  }
}
