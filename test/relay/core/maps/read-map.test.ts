import t from 'tap'
import { entryLength, readMapState } from '../../../../src/relay/core/maps/read-map.js'
import { CHANNEL, mapRelay } from '../../../helper/map-relay.js'
import { required } from '../../../helper/required.js'

t.test('a read of many entries gives way to other work', async (t) => {
  const { engine, options, write } = mapRelay()
  for (let index = 0; index < 5000; index++) write(`k${index}`, index)
  // Each look at the clock is a slice later. The clock of the engine stands still.
  let nowMs = 0
  const context = { maps: engine.maps, monotonicMs: () => (nowMs += 1000) }
  let turns = 0
  const countTurn = (): void => {
    turns += 1
    immediate = setImmediate(countTurn)
  }
  let immediate = setImmediate(countTurn)
  t.teardown(() => clearImmediate(immediate))
  const query = { channel: CHANNEL, cursor: '', limit: -1, key: '', revisionEpoch: null }
  const state = await readMapState(context, { map: options }, query, 1_000_000)
  t.match(state, { entries: { length: 5000 }, cursor: '' })
  t.ok(turns >= 4, `${turns} turns for five steps`)
})

t.test('a read has entries up to its maximum length, and none beyond it', async (t) => {
  const { engine, options, write } = mapRelay()
  for (let index = 0; index < 3; index++) write(`k${index}`, index)
  const context = { maps: engine.maps, monotonicMs: () => 0 }
  const query = { channel: CHANNEL, cursor: '', limit: -1, key: '', revisionEpoch: null }
  const read = (maxLength: number) => readMapState(context, { map: options }, query, maxLength)
  const all = await read(1000)
  const entries = all !== null && 'entries' in all ? all.entries : []
  const length = entries.reduce((sum, entry) => sum + entryLength(entry), 0)

  t.equal(entries.length, 3)
  t.same(await read(length), all)
  t.equal(await read(length - 1), null)
})

t.test('a read of more entries than one step has returns as many as were asked for', async (t) => {
  const { engine, options, write } = mapRelay()
  for (let index = 0; index < 3000; index++) write(`k${index}`, index)
  const context = { maps: engine.maps, monotonicMs: () => 0 }
  const query = { channel: CHANNEL, cursor: '', limit: 2500, key: '', revisionEpoch: null }
  const state = await readMapState(context, { map: options }, query, 1_000_000)
  const { entries, cursor } = required(state !== null && 'entries' in state ? state : null)

  t.equal(entries.length, 2500)
  t.equal(cursor, entries.at(-1)?.key)
  const rest = await readMapState(context, { map: options }, { ...query, cursor }, 1_000_000)
  t.match(rest, { entries: { length: 500 }, cursor: '' })
})
