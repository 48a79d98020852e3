import type { IncomingMessage } from 'node:http'
import type { RelayConfig } from '../config.js'
import type { ClientOptions } from '../core/options.js'
import { Admission } from './admission.js'
import { type ClientAddress, clientAddress } from './client-address.js'
import { type OriginCheck, originCheck } from './origin.js'

/** Decides who may connect, for all transports alike: where the page is from, and how many there are already. */
export class Door {
  readonly admission: Admission
  #originCheck: OriginCheck
  #addressOf: ClientAddress
  #limits: ClientOptions

  constructor(config: RelayConfig, nowMs: () => number) {
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
    if (!this.allowsOrigin(request)) return 403
    const address = this.#addressOf(request)
    const refusal = this.admission.enter(address, this.#limits)
    return refusal ?? (() => this.admission.leave(address))
  }
}
