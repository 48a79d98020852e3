import type { Journal } from './journal.js'
import type { Violation } from './verifier.js'

/** A client that stays subscribed through every fault. */
export interface Subscriber {
  readonly name: string
  readonly user: string
  readonly journals: readonly Journal[]
  /** The id that the relay gave to the present connection; null while there is none. */
  readonly connection: string | null
  /** How often it has connected. */
  readonly connects: number
  /** How often a connection ended, by close code. */
  readonly closes: ReadonlyMap<number, number>
  readonly isSubscribed: boolean
  /** Breaks the connection without a close frame. */
  reset(): void
  /** Stops reading from the socket. */
  pause(): void
  resume(): void
  stop(): void
}

export type Report = (violation: Violation) => void

/** Codes after which a client does not reconnect. */
export const isTerminal = (code: number): boolean => (code >= 3500 && code < 4000) || code >= 4500

/** The unsubscribe code of the API. */
export const SERVER_UNSUBSCRIBE = 2000
