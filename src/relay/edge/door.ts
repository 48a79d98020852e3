import type { IncomingMessage } from 'node:http'
import type { RelayConfig } from '../config.js'
import type { ClientOptions } from '../core/options.js'
import { Admission, type Refusal } from './admission.js'
import { type ClientAddress, clientAddress } from './client-address.js'
import { type OriginCheck, originCheck } from './origin.js'

export interface DoorWatch {
  connectionRefused(reason: 'origin' | Refusal): void
}

const REFUSALS: Readonly<Record<Refusal, number>> = { limit: 503, rate: 503, address: 429 }

/** Decides who may connect, for all transports alike: where the page is from, and how many there are already. */
export class Door {
  readonly admission: Admission
  readonly #watch: DoorWatch
  #originCheck: OriginCheck
  #addressOf: ClientAddress
  #limits: ClientOptions

  constructor(config: RelayConfig, nowMs: () => number, watch: DoorWatch) {
    this.#watch = watch
    this.admission = new Admission(nowMs)
    this.#originCheck = originCheck(config.allowedOrigins)
    this.#addressOf = clientAddress(config.trustedProxies)
    this.#limits = config.client
  }

  configure(config: RelayConfig): void {
    this.#originCheck = originCheck(config.allowedOrigins)
    this.#addressOf = clientAddress(config.trustedProxies)
    this.#limits = config.client
  }

  allowsOrigin({ headers }: IncomingMessage): boolean {
    return this.#originCheck(headers.origin, headers.host)
  }

  /** The status to refuse with, or what to call when the connection has ended. */
  enter(request: IncomingMessage): number | (() => void) {
    if (!this.allowsOrigin(request)) {
      this.#watch.connectionRefused('origin')
      return 403
    }
    const address = this.#addressOf(request)
    const refusal = this.admission.enter(address, this.#limits)
    if (refusal === null) return () => this.admission.leave(address)
    this.#watch.connectionRefused(refusal)
    return REFUSALS[refusal]
  }
}
