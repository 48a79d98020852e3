import fc from 'fast-check'
import t from 'tap'
import { runJson, runProtobuf } from '../../helper/both-codecs.js'
import { CHANNEL, EPHEMERAL, type MapRelay, mapRelay, RECOVERABLE } from '../../helper/map-relay.js'
import { checkProperty } from '../../helper/property.js'
import type { Json } from '../../helper/raw-client.js'
import { relayToken } from '../../helper/relay-rules.js'

const CONNECT: Json = {
  id: 1,
  connect: { token: relayToken({ sub: '42' }, { nowMs: 1_893_456_000_000 }) }
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'Ünïcode 🚲', '__proto__')
/** Long data is sent in another way. */
const data = fc.constantFrom<unknown>(1, { x: 1.5, text: 'é' }, 'é'.repeat(5000))
const tags = fc.constantFrom(null, '{"kind":"car"}')

type Change = (relay: MapRelay) => void

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(key, data, tags).map(
      ([key, data, tags]) =>
        (relay: MapRelay) =>
          relay.write(key, data, { tags })
    )
  },
  { weight: 1, arbitrary: key.map((key) => (relay: MapRelay) => relay.remove(key)) }
)

const command: fc.Arbitrary<Json> = fc
  .record(
    {
      type: fc.constantFrom(1, 1, 1, 1, 1, 0, 2, 4),
      phase: fc.constantFrom(2, 2, 2, 2, 2, 1, 1, 0, 3, -1),
      cursor: fc.constantFrom('a', 'b', 'c', ''),
      limit: fc.constantFrom(0, 1, 3, 100, -1),
      recover: fc.boolean(),
      epoch: fc.constantFrom('epoch1', 'epoch1', 'epoch1', 'other', ''),
      offset: fc.constantFrom(0, 1, 2, 5, 100),
      tf: fc.constantFrom({ key: 'kind', cmp: 'eq', val: 'car' })
    },
    { requiredKeys: ['type', 'phase'] }
  )
  .map((fields) => ({ id: 2, subscribe: { channel: CHANNEL, ...fields } }))

const UNSUBSCRIBE: Json = { id: 3, unsubscribe: { channel: CHANNEL } }

const step = fc.tuple(
  fc.array(change, { maxLength: 4 }),
  fc.oneof({ weight: 5, arbitrary: command }, { weight: 1, arbitrary: fc.constant(UNSUBSCRIBE) })
)

/** The frames of a client. The map changes before each of them. */
const framesOf = function* (relay: MapRelay, steps: readonly (readonly [readonly Change[], Json])[]) {
  yield [CONNECT]
  for (const [changes, command] of steps) {
    for (const change of changes) change(relay)
    yield [command]
  }
}

/** The fields of every object in alphabetical order. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)])
  )
}

/** A client that becomes live and receives a publication. Few of the generated clients do. */
const LIVE_CLIENT: readonly [Change[], Json][] = [
  [[], { id: 2, subscribe: { channel: CHANNEL, type: 1, phase: 2 } }],
  [[(relay) => relay.write('a', 1)], UNSUBSCRIBE]
]

for (const map of [RECOVERABLE, EPHEMERAL]) {
  t.test(`JSON and protobuf clients receive the same from a map with the mode ${map.mode}`, async (t) => {
    let live = 0
    const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
      const relays = [mapRelay(map, { allow_tags_filter: true }), mapRelay(map, { allow_tags_filter: true })] as const
      const inJson = await runJson(relays[0], framesOf(relays[0], steps))
      const inProtobuf = await runProtobuf(relays[1], framesOf(relays[1], steps))
      const [expected, found] = [JSON.stringify(sorted(inJson)), JSON.stringify(sorted(inProtobuf))]
      if (expected !== found) throw new Error(`JSON:     ${expected}\nprotobuf: ${found}`)
      if (expected.includes('"push"')) live++
    })
    await checkProperty(t, property, { numRuns: 150, examples: [[LIVE_CLIENT]] })
    t.ok(live > 0, 'some clients become live')
  })
}
