import fc from 'fast-check'
import t from 'tap'
import { runJson, runProtobuf } from '../../helper/both-codecs.js'
import { checkProperty } from '../../helper/property.js'
import type { Json } from '../../helper/raw-client.js'
import { coreRelay } from '../../helper/relay-core.js'
import { relayToken } from '../../helper/relay-rules.js'

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'room',
        allow_subscribe_for_client: true,
        allow_publish_for_client: true,
        allow_presence_for_client: true,
        allow_history_for_client: true,
        presence: true,
        join_leave: true,
        history_size: 10,
        history_ttl: '60s',
        allow_recovery: true,
        allowed_delta_types: ['fossil']
      },
      { name: 'closed' }
    ]
  }
}

const START_MS = 1_893_456_000_000
const CONNECTION_TOKEN = relayToken({ sub: '42', info: { a: [1, 'ü'] } }, { nowMs: START_MS })
const SUBSCRIPTION_TOKEN = relayToken({ sub: '42', channel: 'closed:1' }, { nowMs: START_MS })

const channel = fc.constantFrom(
  'room:1',
  'room:1',
  'room:1',
  'room:2',
  'closed:1',
  'none:1',
  '',
  'room:é',
  'x'.repeat(300)
)
const token = fc.constantFrom('', CONNECTION_TOKEN, SUBSCRIPTION_TOKEN, 'a.b.c')
const epoch = fc.constantFrom('', 'epoch1', 'other')
const offset = fc.constantFrom(0, 1, 2, 100, 2 ** 53 - 1, 2 ** 53, 2 ** 63)
/** Long data is sent in another way when it is recovered. */
const data = fc.oneof(
  { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  { weight: 1, arbitrary: fc.constant('é'.repeat(5000)) }
)

const fields = <T extends Record<string, unknown>>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { requiredKeys: [] })

const subscribe = fields({
  channel,
  token,
  recover: fc.boolean(),
  epoch,
  offset,
  positioned: fc.boolean(),
  recoverable: fc.boolean(),
  join_leave: fc.boolean(),
  delta: fc.constantFrom('', 'fossil', 'other'),
  flag: fc.constantFrom(0, 1, 2, 3, -1),
  type: fc.constantFrom(0, 0, 0, 1, 4, -1)
})

const REQUESTS = {
  connect: fields({
    token: fc.constantFrom(CONNECTION_TOKEN, CONNECTION_TOKEN, '', 'a.b.c'),
    name: fc.constantFrom('', 'js', 'a name that is longer than sixteen characters'),
    version: fc.string(),
    subs: fc.dictionary(fc.constantFrom('room:1', 'b'), subscribe)
  }),
  subscribe,
  unsubscribe: fields({ channel }),
  publish: fields({ channel, data }),
  presence: fields({ channel }),
  presence_stats: fields({ channel }),
  history: fields({
    channel,
    limit: fc.constantFrom(0, 1, 5, -1, -(2 ** 31)),
    since: fields({ offset, epoch }),
    reverse: fc.boolean()
  }),
  rpc: fc.constant({}),
  send: fc.constant({}),
  refresh: fields({ token }),
  sub_refresh: fields({ channel, token })
}

const { connect: _connect, ...AFTER_CONNECT } = REQUESTS

const id = fc.constantFrom(1, 2, 3, 2 ** 32 - 1)

/** A command that a connected client may send. */
const valid: fc.Arbitrary<Json> = fc
  .tuple(id, fc.oneof(...Object.entries(AFTER_CONNECT).map(([name, each]) => fc.record({ [name]: each }))))
  .map(([id, request]) => ({ id, ...request }))

/** Several requests or none, a second connect, no id. */
const unusual: fc.Arbitrary<Json> = fc
  .tuple(fc.option(id, { nil: undefined }), fields(REQUESTS))
  .map(([id, requests]) => ({ ...(id === undefined ? {} : { id }), ...requests }))

const command = fc.oneof({ weight: 6, arbitrary: valid }, { weight: 1, arbitrary: unusual })

const CONNECT: Json = { id: 1, connect: { token: CONNECTION_TOKEN } }

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

// Few of the generated connections stay open, so the examples guarantee both outcomes.
const ACCEPTED: [boolean, Json[][]] = [true, [[{ id: 2, subscribe: { channel: 'room:1' } }]]]
const REJECTED: [boolean, Json[][]] = [true, [[CONNECT]]]

t.test('JSON and protobuf clients receive the same replies and close codes for the same commands', async (t) => {
  const seen = new Set<string>()
  const property = fc.asyncProperty(
    fc.constantFrom(true, true, true, false),
    fc.array(fc.array(command, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
    async (connects, commands) => {
      const frames = connects ? [[CONNECT], ...commands] : commands
      // JSON clients with deltas receive all data as strings, and protobuf clients do not.
      const text = JSON.stringify(frames)
      fc.pre(!(text.includes('"fossil"') && text.includes('"publish"')))
      const inJson = await runJson(coreRelay(FILE), frames)
      const inProtobuf = await runProtobuf(coreRelay(FILE), frames)
      seen.add(inJson.closed ?? 'open')
      const [expected, found] = [JSON.stringify(sorted(inJson)), JSON.stringify(sorted(inProtobuf))]
      if (expected !== found) throw new Error(`JSON:     ${expected}\nprotobuf: ${found}`)
    }
  )
  await checkProperty(t, property, { numRuns: 400, examples: [ACCEPTED, REJECTED] })
  t.ok(seen.has('open') && seen.has('3501 bad request'), 'some commands are accepted and some rejected')
})
