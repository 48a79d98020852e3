import t from 'tap'
import type { MapWrite } from '../../../src/relay/core/engine.js'
import type { Publication } from '../../../src/relay/core/publication.js'
import { MemoryMaps } from '../../../src/relay/engine/memory-maps.js'
import { SortedKeys } from '../../../src/relay/engine/sorted-keys.js'
import { ALL } from './contract.js'
import { EPHEMERAL, PERSISTENT, PLAIN_WRITE, RECOVERABLE } from './map-contract.js'

const HOUR_MS = 3_600_000
const CHANNEL = 'ns:1'
const EVERYTHING = { after: '', limit: -1 }

const memoryMaps = (clocks?: { monotonicMs: () => number }) => {
  const clock = { nowMs: 0, stepMs: 0 }
  let epochs = 0
  const delivered: Publication[] = []
  const subscribed = new Set<string>()
  const maps = new MemoryMaps({
    nowMs: () => clock.nowMs + clock.stepMs,
    monotonicMs: () => clock.nowMs,
    newEpoch: () => `epoch${++epochs}`,
    hasSubscribers: (channel) => subscribed.has(channel),
    deliver: (_channel, change) => void delivered.push(change),
    ...clocks
  })
  const write = (key: string, options = RECOVERABLE, more: Partial<MapWrite> = {}) =>
    maps.write(CHANNEL, { ...PLAIN_WRITE, key, data: '1', ...more }, options)
  return { maps, clock, delivered, subscribed, write }
}

t.test('key_ttl is not affected by a step of the system clock', async (t) => {
  const { maps, clock, write } = memoryMaps()
  write('a')
  clock.stepMs = 24 * HOUR_MS
  clock.nowMs += 59_999
  t.match(await maps.expire(), { keys: 0 })
  clock.stepMs = -24 * HOUR_MS
  clock.nowMs += 1

  t.match(await maps.expire(), { keys: 1, lagMs: 0 })
})

t.test('an entry carries the time of the system clock', async (t) => {
  const { maps, clock, write } = memoryMaps()
  clock.stepMs = HOUR_MS
  write('a')

  t.match(await maps.readKey(CHANNEL, 'a', RECOVERABLE), { time: HOUR_MS })
})

t.test('a changed key_ttl applies to existing keys with the next use of the map', async (t) => {
  const { maps, clock, write } = memoryMaps()
  write('a')
  clock.nowMs += 10_000
  write('b', { ...RECOVERABLE, keyTtlMs: 5_000 })
  t.match(await maps.expire(), { keys: 1 })
  clock.nowMs += 1_000
  write('c', { ...RECOVERABLE, keyTtlMs: 120_000 })
  clock.nowMs += 100_000
  t.match(await maps.expire(), { keys: 0 })
  clock.nowMs += 20_000

  t.match(await maps.expire(), { keys: 2 })
})

t.test('a map begins again if its mode changes between ephemeral and the others', async (t) => {
  const { maps, write } = memoryMaps()
  write('a', RECOVERABLE)
  t.match(write('b', PERSISTENT), { epoch: 'epoch1', offset: 2 })
  write('c', EPHEMERAL)
  t.match(await maps.readState(CHANNEL, EVERYTHING, EPHEMERAL), { epoch: '', entries: [{ key: 'c' }] })

  t.match(await maps.readState(CHANNEL, EVERYTHING, RECOVERABLE), { epoch: /epoch[^1]/, offset: 0, entries: [] })
})

t.test('a map with subscribers stays, and its lifetime starts when the last one has left', async (t) => {
  const { maps, clock, subscribed, write } = memoryMaps()
  const options = { ...RECOVERABLE, keyTtlMs: HOUR_MS }
  write('a', options)
  subscribed.add(CHANNEL)
  clock.nowMs += 10 * HOUR_MS
  maps.sweep()
  t.match(await maps.readState(CHANNEL, EVERYTHING, options), { epoch: 'epoch1', entries: [{ key: 'a' }] })
  clock.nowMs += 10 * HOUR_MS
  subscribed.delete(CHANNEL)
  maps.unsubscribed(CHANNEL)
  clock.nowMs += HOUR_MS - 1
  maps.sweep()
  t.match(await maps.readState(CHANNEL, EVERYTHING, options), { epoch: 'epoch1' })
  clock.nowMs += HOUR_MS
  maps.sweep()

  t.match(await maps.readState(CHANNEL, EVERYTHING, options), { epoch: 'epoch2', offset: 0, entries: [] })
})

t.test('a read map without entries is forgotten after ten minutes, also in the mode persistent', async (t) => {
  const { maps, clock } = memoryMaps()
  t.match(await maps.readStream(CHANNEL, ALL, PERSISTENT), { epoch: 'epoch1' })
  clock.nowMs += 600_000

  t.match(await maps.readStream(CHANNEL, ALL, PERSISTENT), { epoch: 'epoch2' })
})

t.test('many expired keys and a long read give way to other work', async (t) => {
  let ticks = 0
  // Every reading of the clock is one millisecond later, so that a slice ends after a few steps.
  const { maps, delivered, write } = memoryMaps({ monotonicMs: () => ticks++ })
  const options = { ...RECOVERABLE, keyTtlMs: 50_000 }
  for (let key = 0; key < 20_000; key++) write(String(key), options)
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  t.equal((await maps.readState(CHANNEL, EVERYTHING, options)).entries.length, 20_000)
  t.ok(turns >= 1, `${turns} turns`)
  ticks += 100_000
  turns = 0
  const [first, second] = await Promise.all([maps.expire(), maps.expire()])
  isDone = true
  t.equal(first.keys + second.keys, 20_000)
  t.ok(turns > 100, `${turns} turns`)

  t.equal(delivered.filter(({ removed }) => removed).length, 20_000)
})

t.test('a map that is cleared during its expiry delivers no removal afterwards', async (t) => {
  let ticks = 0
  const { maps, delivered, write } = memoryMaps({ monotonicMs: () => ticks++ })
  for (let key = 0; key < 1_000; key++) write(String(key), { ...RECOVERABLE, keyTtlMs: 10_000 })
  ticks += 100_000
  const expiry = maps.expire()
  await maps.clear(CHANNEL)
  const { keys } = await expiry
  t.ok(keys < 1_000)

  t.equal(delivered.filter(({ removed }) => removed).length, keys)
})

t.test('sorted keys equal a sorted array after random changes', async (t) => {
  const keys = new SortedKeys()
  const model = new Set<string>()
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * below)
  }
  for (let step = 0; step < 20_000; step++) {
    const key = `k${random(5_000)}`
    if (model.delete(key)) keys.delete(key)
    else {
      model.add(key)
      keys.add(key)
    }
  }
  const sorted = [...model].sort()
  t.same(keys.after('', Number.POSITIVE_INFINITY), sorted)
  for (let probe = 0; probe < 200; probe++) {
    const after = `k${random(6_000)}`
    t.same(keys.after(after, 20), sorted.filter((key) => key > after).slice(0, 20))
  }
  for (const key of sorted) keys.delete(key)

  t.same(keys.after('', 1), [])
})
