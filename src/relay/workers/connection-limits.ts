import type { MaybePromise } from '../core/maybe-promise.js'
import {
  type ConnectionCounter,
  type ConnectionLimits,
  type LimitReached,
  LocalConnectionCounter
} from '../transport/admission.js'
import type { IpcConnection } from './ipc.js'

/** Encodes the outcome of an admission by its index. */
const OUTCOMES = [null, 'limit', 'rate', 'address'] as const

/** A worker's side: the primary counts the connections of all workers, because limits apply to their sum. */
export class WorkerAdmission implements ConnectionCounter {
  readonly #primary: IpcConnection

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  acquire(address: string, limits: ConnectionLimits): MaybePromise<LimitReached | null> {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    if (connectionLimit + connectionsPerAddress + connectionRateLimit > 0) return this.#request(address, limits)
    // Without limits there is nothing to wait for. Counted all the same: a reload may set limits.
    this.#primary.send('countConnection', (out) => out.text(address))
    return null
  }

  async #request(address: string, limits: ConnectionLimits): Promise<LimitReached | null> {
    const { connectionLimit, connectionsPerAddress, connectionRateLimit } = limits
    try {
      return await this.#primary.request(
        'acquireConnection',
        (out) => out.text(address).number(connectionLimit).number(connectionsPerAddress).number(connectionRateLimit),
        (fields) => OUTCOMES[fields.byte()] ?? null
      )
    } catch {
      // The primary has ended, and this worker is about to exit.
      return 'limit'
    }
  }

  release(address: string): void {
    this.#primary.send('releaseConnection', (out) => out.text(address))
  }
}

/** The primary's side. The connections of a worker are released when its IPC connection closes. */
export class PrimaryAdmission {
  readonly #counter: LocalConnectionCounter

  constructor(monotonicMs: () => number) {
    this.#counter = new LocalConnectionCounter(monotonicMs)
  }

  serve(ipc: IpcConnection): void {
    const workerConnections = new Map<string, number>()
    const change = (address: string, difference: 1 | -1): void => {
      const count = (workerConnections.get(address) ?? 0) + difference
      if (count > 0) workerConnections.set(address, count)
      else workerConnections.delete(address)
    }
    ipc.onRequest({
      acquireConnection: (fields) => {
        const address = fields.text()
        const limitReached = this.#counter.acquire(address, {
          connectionLimit: fields.number(),
          connectionsPerAddress: fields.number(),
          connectionRateLimit: fields.number()
        })
        if (limitReached === null) change(address, 1)
        return (out) => out.byte(OUTCOMES.indexOf(limitReached))
      }
    })
    ipc.onMessage({
      countConnection: (fields) => {
        const address = fields.text()
        this.#counter.count(address)
        change(address, 1)
      },
      releaseConnection: (fields) => {
        const address = fields.text()
        this.#counter.release(address)
        change(address, -1)
      }
    })
    void ipc.closed.then(() => {
      for (const [address, count] of workerConnections) {
        for (let remaining = count; remaining > 0; remaining--) this.#counter.release(address)
      }
    })
  }
}
