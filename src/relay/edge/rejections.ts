import type { IncomingMessage } from 'node:http'
import type { LimitedLog } from './limited-log.js'
import type { Troubles } from './troubles.js'

export type RejectionKind = 'origin' | 'token' | 'api_key'

export interface RejectionWatch {
  rejected(kind: RejectionKind, reason: string): void
}

const MAX_ORIGIN_LENGTH = 200

/** Rejected origins, tokens and API keys: counted by reason, in the log, and kept for the operators' first checks. */
export class Rejections {
  readonly #troubles: Troubles
  readonly #watch: RejectionWatch
  readonly #log: LimitedLog

  constructor(troubles: Troubles, watch: RejectionWatch, log: LimitedLog) {
    this.#troubles = troubles
    this.#watch = watch
    this.#log = log
  }

  origin({ headers }: IncomingMessage, address: string): void {
    const origin = headers.origin ?? ''
    this.#troubles.add('origin', origin)
    this.#reject('origin', 'not-allowed', { address, origin: origin.slice(0, MAX_ORIGIN_LENGTH) }, 'rejected origin')
  }

  token(reason: string, address: string): void {
    this.#troubles.add('token', reason)
    this.#reject('token', reason, { address }, 'rejected token')
  }

  key(reason: 'missing' | 'wrong', address: string): void {
    this.#troubles.add('key', address)
    this.#reject('api_key', reason, { address }, 'rejected API key')
  }

  #reject(kind: RejectionKind, reason: string, facts: object, message: string): void {
    this.#watch.rejected(kind, reason)
    this.#log.warn(`${kind} ${reason}`, { reason, ...facts }, message)
  }
}
