import {
  type ConnectionCounter,
  type ConnectionLimits,
  type LimitReached,
  LocalConnectionCounter
} from '../transport/admission.js'
import type { IpcChannel } from './ipc.js'

/** How a refusal travels; the first is none. */
export const REFUSALS = [null, 'limit', 'rate', 'address'] as const

/** Asks the process that counts the connections of all workers: limits hold for their sum. */
export class WorkerAdmission implements ConnectionCounter {
  readonly #primary: IpcChannel

  constructor(primary: IpcChannel) {
    this.#primary = primary
  }

  acquire(address: string, limits: ConnectionLimits): Promise<LimitReached | null> | null {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (connectionLimit + connectionsPerAddress + connectionRateLimit === 0) {
      // Nobody has to wait. It counts all the same: a new file may bring limits.
      this.#primary.send('entered', (out) => out.text(address))
      return null
    }
    const asked = this.#primary.request(
      'enter',
      (out) => out.text(address).number(connectionLimit).number(connectionsPerAddress).number(connectionRateLimit),
      (fields) => REFUSALS[fields.byte()] ?? null
    )
    // The owner is gone, and this worker goes too.
    return asked.catch(() => 'limit' as const)
  }

  release(address: string): void {
    this.#primary.send('leave', (out) => out.text(address))
  }
}

/** Counts the connections of all workers. Those of a worker that has ended are gone with it. */
export class PrimaryAdmission {
  readonly #admission: LocalConnectionCounter

  constructor(monotonicMs: () => number) {
    this.#admission = new LocalConnectionCounter(monotonicMs)
  }

  serve(ipc: IpcChannel): void {
    const entered = new Map<string, number>()
    const note = (address: string, change: 1 | -1): void => {
      const count = (entered.get(address) ?? 0) + change
      if (count > 0) entered.set(address, count)
      else entered.delete(address)
    }
    ipc.onRequest({
      enter: (fields) => {
        const address = fields.text()
        const refusal = this.#admission.acquire(address, {
          connectionLimit: fields.number(),
          connectionsPerAddress: fields.number(),
          connectionRateLimit: fields.number()
        })
        if (refusal === null) note(address, 1)
        return (out) => out.byte(REFUSALS.indexOf(refusal))
      }
    })
    ipc.onMessage({
      entered: (fields) => {
        const address = fields.text()
        this.#admission.count(address)
        note(address, 1)
      },
      leave: (fields) => {
        const address = fields.text()
        this.#admission.release(address)
        note(address, -1)
      }
    })
    void ipc.closed.then(() => {
      for (const [address, count] of entered) for (let left = 0; left < count; left++) this.#admission.release(address)
    })
  }
}
