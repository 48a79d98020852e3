import type { Bucket, UserRates } from '../core/engine.js'
import type { MemoryUserRates } from '../engine/memory-user-rates.js'
import type { FrameReader, FrameWriter } from './frames.js'
import type { IpcConnection } from './ipc.js'
import { readList, writeList } from './messages.js'

/** A worker's side: the primary has the token buckets of users for all workers. */
export class WorkerUserRates implements UserRates {
  readonly #primary: IpcConnection

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  take(user: string, buckets: readonly Bucket[]): Promise<boolean> {
    return this.#primary.request(
      'takeUserRates',
      (out) => writeList(out.text(user), buckets, writeBucket),
      (fields) => fields.byte() === 1
    )
  }
}

/** The primary's side. */
export const serveUserRates = (ipc: IpcConnection, rates: MemoryUserRates): void => {
  ipc.onRequest({
    takeUserRates: (fields) => {
      const isTaken = rates.take(fields.text(), readList(fields, readBucket))
      return (out) => out.byte(isTaken ? 1 : 0)
    }
  })
}

const writeBucket = (out: FrameWriter, { name, rate, intervalMs }: Bucket): void => {
  out.text(name).number(rate).number(intervalMs)
}

const readBucket = (fields: FrameReader): Bucket => ({
  name: fields.text(),
  rate: fields.number(),
  intervalMs: fields.number()
})
