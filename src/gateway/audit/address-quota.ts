import { BoundedMap } from '../../shared/bounded-map.js'
import { addressGroup } from '../http/client-request.js'

const WINDOW_MS = 60_000
const MIN_ADDRESSES = 10_000

interface Window {
  readonly startedAt: number
  records: number
  omitted: number
}

/** Limits the audit records without a user by address, because anyone can cause them. */
export class AddressQuota {
  readonly #perMinute: number
  readonly #windows = new BoundedMap<string, Window>(MIN_ADDRESSES)

  constructor(perMinute: number) {
    this.#perMinute = perMinute
  }

  /** The number of records of this address that were omitted since the last one; null if this one is omitted too. */
  take(address: string, now: number): number | null {
    const group = addressGroup(address)
    const window = this.#windows.get(group)
    if (window === undefined || now < window.startedAt || now - window.startedAt >= WINDOW_MS) {
      this.#windows.set(group, { startedAt: now, records: 1, omitted: 0 })
      return window?.omitted ?? 0
    }
    if (window.records < this.#perMinute) {
      window.records += 1
      return 0
    }
    window.omitted += 1
    return null
  }
}
