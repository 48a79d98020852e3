import type { Admission, ConnectionLimits, Refusal } from '../edge/admission.js'
import type { Link } from './link.js'

/** How a refusal travels; the first is none. */
export const REFUSALS = [null, 'limit', 'rate', 'address'] as const

/** Asks the process that counts the connections of all workers: limits hold for their sum. */
export class SharedAdmission implements Admission {
  readonly #owner: Link

  constructor(owner: Link) {
    this.#owner = owner
  }

  enter(address: string, limits: ConnectionLimits): Promise<Refusal | null> | null {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (connectionLimit + connectionsPerAddress + connectionRateLimit === 0) {
      // Nobody has to wait. It counts all the same: a new file may bring limits.
      this.#owner.tell('entered', (out) => out.text(address))
      return null
    }
    const asked = this.#owner.ask(
      'enter',
      (out) => out.text(address).number(connectionLimit).number(connectionsPerAddress).number(connectionRateLimit),
      (fields) => REFUSALS[fields.byte()] ?? null
    )
    // The owner is gone, and this worker goes too.
    return asked.catch(() => 'limit' as const)
  }

  leave(address: string): void {
    this.#owner.tell('leave', (out) => out.text(address))
  }
}
