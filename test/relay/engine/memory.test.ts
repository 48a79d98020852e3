import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { MemoryEngine, MemoryUserConnections } from '../../../src/relay/engine/memory.js'
import { MemoryPresence } from '../../../src/relay/engine/memory-presence.js'
import { MemoryUserRates } from '../../../src/relay/engine/memory-user-rates.js'
import { configOf } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'
import { channelStateContract } from './channel-state-contract.js'
import { channelStateModel } from './channel-state-model.js'
import { engineContract } from './contract.js'
import { mapContract } from './map-contract.js'
import { engineModel } from './model.js'

const memoryEngine = () => {
  let nowMs = 0
  let stepMs = 0
  let epochs = 0
  const clocks = { nowMs: () => nowMs + stepMs, monotonicMs: () => nowMs }
  const engine = new MemoryEngine({ ...clocks, newEpoch: () => `epoch${++epochs}` })
  const presence = new MemoryPresence(clocks)
  return {
    engine,
    broker: engine,
    history: engine,
    maps: engine.maps,
    presence,
    channelStates: presence.channelStates,
    userConnections: new MemoryUserConnections(),
    userRates: new MemoryUserRates(clocks.monotonicMs),
    advance: (ms: number) => {
      nowMs += ms
    },
    /** Sets the system clock; the monotonic clock does not change. */
    step: (ms: number) => {
      stepMs += ms
    }
  }
}

engineContract('the memory engine', async () => memoryEngine())
mapContract('the memory engine', async () => memoryEngine())
channelStateContract('the memory engine', async () => {
  const engine = memoryEngine()
  return { ...engine, elapse: engine.advance }
})
channelStateModel('the memory engine', async () => ({ ...memoryEngine(), elapse: () => undefined }), { runs: 500 })
engineModel('the memory engine', async () => memoryEngine(), { runs: 500 })

t.test('the memory engine', async (t) => {
  const { channels } = configOf({
    channel: { namespaces: [{ name: 'ns', history_size: 3, history_ttl: '60s', history_meta_ttl: '3600s' }] }
  })
  const options = required(channels.namespaces.get('ns'))
  const publication = { ...PLAIN_PUBLICATION, data: '1' }
  const TOP = { since: null, limit: 0, reverse: false }

  const HOUR_MS = 3_600_000
  const ALL = { since: null, limit: -1, reverse: false }

  t.test('history_ttl is not affected by a step of the system clock', async (t) => {
    const { engine, advance, step } = memoryEngine()
    engine.publish('ns:1', publication, options)
    step(-HOUR_MS)
    advance(59_999)
    t.equal((await engine.read('ns:1', ALL, options)).publications.length, 1)
    step(2 * HOUR_MS)
    t.equal((await engine.read('ns:1', ALL, options)).publications.length, 1)
    advance(1)
    t.equal((await engine.read('ns:1', ALL, options)).publications.length, 0)
  })

  t.test('history_meta_ttl is not affected by a step of the system clock', async (t) => {
    const { engine, advance, step } = memoryEngine()
    engine.publish('ns:1', publication, options)
    step(24 * HOUR_MS)
    engine.sweep()
    t.match(await engine.read('ns:1', TOP, options), { epoch: 'epoch1' })
    step(-48 * HOUR_MS)
    advance(HOUR_MS)
    engine.sweep()
    t.match(await engine.read('ns:1', TOP, options), { epoch: 'epoch2' })
  })

  t.test('an idempotency key is valid for five minutes, also across steps of the system clock', async (t) => {
    const { engine, advance, step } = memoryEngine()
    const once = { ...publication, idempotencyKey: 'a' }
    engine.publish('ns:1', once, options)
    step(HOUR_MS)
    t.match(engine.publish('ns:1', once, options), { suppressedBy: 'idempotency' })
    step(-2 * HOUR_MS)
    advance(5 * 60_000)
    t.match(engine.publish('ns:1', once, options), { suppressedBy: null })
  })

  t.test('a publication carries the time of the system clock', async (t) => {
    const { engine, step } = memoryEngine()
    step(HOUR_MS)
    engine.publish('ns:1', publication, options)

    t.equal((await engine.read('ns:1', ALL, options)).publications[0]?.time, HOUR_MS)
  })

  t.test('an expired channel begins a new epoch', async (t) => {
    const { engine, advance } = memoryEngine()
    engine.publish('ns:1', publication, options)
    advance(3_599_000)
    t.match(await engine.read('ns:1', TOP, options), { epoch: 'epoch1', offset: 1 }, 'reading extends the lifetime')
    advance(3_600_000)
    engine.sweep()

    t.match(engine.publish('ns:1', publication, options), { epoch: 'epoch2', offset: 1 })
  })

  t.test('a channel with subscribers does not expire', async (t) => {
    const { engine, advance } = memoryEngine()
    await engine.subscribe('ns:1')
    await engine.read('ns:1', TOP, options)
    advance(36_000_000)
    engine.sweep()
    t.match(engine.publish('ns:1', publication, options), { epoch: 'epoch1', offset: 1 })
    await engine.unsubscribe('ns:1')
    advance(3_599_000)
    engine.sweep()
    t.match(
      await engine.read('ns:1', TOP, options),
      { epoch: 'epoch1', offset: 1 },
      'the lifetime starts when the last subscriber has left'
    )
    advance(3_600_000)

    t.match(await engine.read('ns:1', TOP, options), { epoch: 'epoch2', offset: 0 })
  })

  t.test('a channel without publications keeps its epoch, and that of a subscribed one does not change', async (t) => {
    const { engine, advance } = memoryEngine()
    t.match(await engine.read('ns:1', TOP, options), { epoch: 'epoch1', offset: 0 })
    await engine.subscribe('ns:1')
    await engine.read('ns:1', TOP, options)
    await engine.unsubscribe('ns:1')
    advance(36_000_000)
    engine.sweep()
    t.match(await engine.read('ns:1', TOP, options), { epoch: 'epoch1', offset: 0 })
    t.match(engine.publish('ns:1', publication, options), { epoch: 'epoch1', offset: 1 })
  })

  t.test('channels that share the epoch of an expired stream get a new one, except subscribed ones', async (t) => {
    const { engine, advance } = memoryEngine()
    // Their hashes are equal.
    const [published, subscribed, unused] = ['ns:AaAa', 'ns:BBBB', 'ns:AaBB']
    await engine.subscribe(subscribed)
    for (const channel of [subscribed, unused]) await engine.read(channel, TOP, options)
    t.match(engine.publish(published, publication, options), { epoch: 'epoch1' })
    advance(3_600_000)
    engine.sweep()

    t.match(engine.publish(subscribed, publication, options), { epoch: 'epoch1', offset: 1 })
    t.match(await engine.read(unused, TOP, options), { epoch: 'epoch2', offset: 0 })
    t.match(engine.publish(published, publication, options), { epoch: 'epoch2', offset: 1 })
  })

  t.test('an expired idempotency key publishes again, before and after a sweep', async (t) => {
    const { engine, advance } = memoryEngine()
    const keyed = { ...publication, idempotencyKey: 'k' }
    engine.publish('ns:1', keyed, options)
    advance(299_999)
    engine.sweep()
    t.match(engine.publish('ns:1', keyed, options), { offset: 1 })
    advance(1)
    t.match(engine.publish('ns:1', keyed, options), { offset: 2 })
    advance(300_000)
    engine.sweep()

    t.match(engine.publish('ns:1', keyed, options), { offset: 3 })
  })

  t.test('different pairs of channel and idempotency key are never equal', async (t) => {
    const { engine } = memoryEngine()
    engine.publish('ns:1', { ...publication, idempotencyKey: '2x' }, options)

    t.match(engine.publish('ns:12', { ...publication, idempotencyKey: 'x' }, options), {
      offset: 1,
      suppressedBy: null
    })
  })

  t.test('a closed engine delivers nothing', async (t) => {
    const { engine } = memoryEngine()
    const fail = () => t.fail('delivered')
    await engine.start({ publication: fail, joinOrLeave: fail, mayHaveMissed: fail, positions: () => [] })
    await engine.close()
    engine.publish('ns:1', publication, options)
  })
})
