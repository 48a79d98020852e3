import type { ConnectionState } from './relay-connection.js'

export interface Refusal {
  /** The rejected channel; null if the connection was rejected or closed. */
  readonly channel: string | null
  readonly code: number | string
  readonly message: string
  /** Whether the client tries again, with growing delays. Otherwise it waits for a sign-in or for `start`. */
  readonly retryable: boolean
}

export interface RealtimeEvents {
  state: ConnectionState
  /** The service or the relay rejected a channel or the connection. */
  refused: Refusal
  /** The user signed out or is another one: everything that was received has been forgotten. */
  reset: undefined
}
