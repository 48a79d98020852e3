import type { Disconnect } from '../codes.js'
import type { Client } from './client.js'

/** Limits the rate at which closed clients reconnect. */
export const CLOSES_PER_SECOND = 500

/** Closes many clients at a limited rate. `tick` is called periodically. */
export class PacedClose {
  readonly #reason: Disconnect
  #clients: Client[] = []
  #closedAt = 0

  constructor(reason: Disconnect) {
    this.#reason = reason
  }

  /** Closes these clients, and those of an earlier call that are still open, from now on. */
  start(clients: readonly Client[], nowMs: number): void {
    if (this.#clients.length === 0) this.#closedAt = nowMs
    this.#clients = [...new Set([...this.#clients, ...clients])]
  }

  tick(nowMs: number): void {
    if (this.#clients.length === 0) return
    let due = Math.floor(((nowMs - this.#closedAt) * CLOSES_PER_SECOND) / 1000)
    this.#closedAt = nowMs
    while (due > 0) {
      const client = this.#clients.pop()
      if (client === undefined) return
      if (client.isClosed) continue
      client.close(this.#reason)
      due--
    }
  }
}
