import { PLAIN_WRITE } from '../../src/relay/core/maps/write-map.js'
import { MemoryEngine } from '../../src/relay/engine/memory.js'

// Prints the bytes of heap that a key of a map takes in the memory engine, and the bytes of the key and its data. Needs --expose-gc.

const KEYS = 100_000

const nowMs = (): number => Date.now()
const engine = new MemoryEngine({ nowMs, monotonicMs: nowMs, newEpoch: () => 'epoch' })
await engine.start({
  publication: () => undefined,
  joinOrLeave: () => undefined,
  mayHaveMissed: () => undefined,
  positions: () => []
})
const options = {
  mode: 'persistent',
  keyTtlMs: 0,
  streamSize: 100,
  streamTtlMs: 60_000,
  metaTtlMs: 0,
  maxKeys: KEYS,
  deliversPrevious: false
} as const

const heapUsed = (): number => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const before = heapUsed()
let contentBytes = 0
for (let index = 0; index < KEYS; index++) {
  const key = `transmitter-${index}`
  // From bytes, as it arrives: a template would be stored as a rope.
  const data = Buffer.from(
    JSON.stringify({ x: 12.5 + index, y: 40.25, floorId: 7, accuracy: 0.4, at: 1_763_200_000_000 + index })
  ).toString()
  contentBytes += key.length + data.length
  await engine.maps.write('floor:1', { ...PLAIN_WRITE, key: Buffer.from(key).toString(), data }, options)
}
const heap = (heapUsed() - before) / KEYS
// The engine is used after the measurement, so that it is not collected before.
const keys = await engine.maps.count('floor:1', options)
console.log(JSON.stringify({ keys, heap, content: contentBytes / KEYS }))
