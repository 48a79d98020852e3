import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'

export const MIB = 1024 * 1024

/** Large bodies repeat this block. */
export const block = randomBytes(MIB)

/** The number of bytes written so far. */
export interface Progress {
  bytes: number
}

/** Writes this many bytes with backpressure and returns their hash. */
export const pour = async (into: Writable, bytes: number, progress: Progress = { bytes: 0 }): Promise<string> => {
  const hash = createHash('sha256')
  for (let written = 0; written < bytes; written += block.length) {
    const part = block.subarray(0, Math.min(block.length, bytes - written))
    hash.update(part)
    const taken = into.write(part)
    progress.bytes = written + part.length
    if (!taken) await once(into, 'drain')
  }
  into.end()
  return hash.digest('hex')
}

export const hashOf = async (stream: Readable): Promise<string> => {
  const hash = createHash('sha256')
  for await (const part of stream) hash.update(part)
  return hash.digest('hex')
}
