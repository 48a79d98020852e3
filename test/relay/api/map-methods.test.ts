import t from 'tap'
import { ApiDispatcher } from '../../../src/relay/api/dispatcher.js'
import { schemaError } from '../../../src/relay/api/request.js'
import { ReplyError } from '../../../src/relay/core/codes.js'
import type { Publication } from '../../../src/relay/core/publication.js'
import { NO_METRICS } from '../../helper/no-metrics.js'
import { coreRelay } from '../../helper/relay-core.js'

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined }
const UNWATCHED = { apiReplied: () => undefined, apiError: () => undefined, unexpectedError: () => undefined }

const FILE = {
  channel: {
    namespaces: [
      {
        name: 'map',
        subscription_type: 'map',
        map: { mode: 'recoverable', key_ttl: '60s', stream_size: 5, max_keys: 50 }
      },
      { name: 'short', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '60s' } },
      { name: 'object', subscription_type: 'map', publication_data_format: 'json_object', map: { mode: 'persistent' } },
      { name: 'bytes', subscription_type: 'map', publication_data_format: 'binary', map: { mode: 'persistent' } },
      {
        name: 'deltas',
        subscription_type: 'map',
        delta_publish: true,
        allowed_delta_types: ['fossil'],
        map: { mode: 'persistent' }
      },
      { name: 'checked', subscription_type: 'map', schema: 'PositionBatch', map: { mode: 'persistent' } },
      { name: 'stream', history_size: 5, history_ttl: '60s', presence: true }
    ]
  }
}

type Request = Readonly<Record<string, unknown>>

const setUp = () => {
  const core = coreRelay(FILE, { schemaError })
  const delivered: Publication[] = []
  for (const channel of ['map:1', 'short:1', 'deltas:1'])
    core.relay.observeChannel(channel, (publication) => void delivered.push(publication))
  const dispatcher = new ApiDispatcher(core.relay, UNWATCHED, SILENT)
  /** The result, or the code of the error. */
  const call = async (method: string, request: Request): Promise<unknown> => {
    const reply = await dispatcher.runMethod(method, Buffer.from(JSON.stringify(request)))
    return reply instanceof ReplyError ? reply.code : JSON.parse(String(reply)).result
  }
  const write = (key: string, more: Request = {}) => call('map_publish', { channel: 'map:1', key, data: 1, ...more })
  return { ...core, dispatcher, delivered, call, write }
}

t.test('map_publish stores an entry and returns its position', async (t) => {
  const { call, write, delivered } = setUp()
  t.same(await write('a', { data: { x: 1 }, tags: { t: 'v' }, score: 7 }), { epoch: 'epoch1', offset: 1 })
  t.same(await call('map_read_state', { channel: 'map:1', limit: -1 }), {
    entries: [{ key: 'a', data: { x: 1 }, tags: { t: 'v' }, offset: 1, time: 1_893_456_000_000 }],
    epoch: 'epoch1',
    offset: 1
  })
  t.match(delivered, [{ key: 'a', data: '{"x":1}', tags: '{"t":"v"}', offset: 1 }])
})

t.test('map_publish returns why a write was suppressed', async (t) => {
  const { call, write } = setUp()
  await write('a', { version: 5, version_epoch: 'v', idempotency_key: 'i' })
  const reason = (suppress_reason: string) => ({ epoch: 'epoch1', offset: 1, suppressed: true, suppress_reason })

  t.same(await write('a', { idempotency_key: 'i' }), reason('idempotency'))
  t.same(await write('a', { version: 5 }), reason('version'))
  t.same(await write('a', { key_mode: 'if_new' }), reason('key_exists'))
  t.same(await write('b', { key_mode: 'if_exists' }), reason('key_not_found'))
  t.same(await call('map_remove', { channel: 'map:1', key: 'b' }), reason('key_not_found'))
})

t.test('map_remove removes a key once', async (t) => {
  const { call, write, delivered } = setUp()
  await write('a', { tags: { t: 'v' } })
  const remove = () => call('map_remove', { channel: 'map:1', key: 'a', idempotency_key: 'r' })
  t.same(await remove(), { epoch: 'epoch1', offset: 2 })
  t.same(await remove(), { epoch: 'epoch1', offset: 2, suppressed: true, suppress_reason: 'idempotency' })
  t.same(await call('map_stats', { channel: 'map:1' }), {})

  t.match(delivered.slice(1), [{ key: 'a', removed: true, offset: 2, tags: '{"t":"v"}' }])
})

t.test('results of an ephemeral map have no position', async (t) => {
  const { call } = setUp()
  t.same(await call('map_publish', { channel: 'short:1', key: 'a', data: 1 }), {})
  t.match(await call('map_read_state', { channel: 'short:1', limit: 10 }), {
    entries: [{ key: 'a', data: 1 }],
    offset: undefined,
    epoch: undefined
  })
  t.same(await call('map_read_stream', { channel: 'short:1', limit: 10 }), {})
  t.same(await call('map_publish', { channel: 'short:1', key: 'a', data: 1, version: 1 }), 100)

  t.same(await call('map_remove', { channel: 'short:1', key: 'a' }), {})
})

t.test('invalid requests for maps receive an error and change nothing', async (t) => {
  const { call } = setUp()
  const long = 'é'.repeat(513)
  const cases: readonly (readonly [method: string, request: Request, code: number])[] = [
    ['map_publish', { key: 'a', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: '', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: 7, data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: long, data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: '\ud800', data: 1 }, 107],
    ['map_publish', { channel: 'map:1', key: 'a' }, 107],
    ['map_publish', { channel: 'map:1', key: 'a', data: 1, key_mode: 'sometimes' }, 107],
    ['map_publish', { channel: 'map:1', key: 'a', data: 1, key_mode: 'constructor' }, 107],
    ['map_publish', { channel: 'map:1', key: 'a', data: 1, version: -1 }, 107],
    ['map_publish', { channel: 'map:1', key: 'a', data: 1, tags: { a: 1 } }, 107],
    ['map_publish', { channel: 'object:1', key: 'a', data: [1] }, 107],
    ['map_publish', { channel: 'checked:1', key: 'a', data: {} }, 107],
    ['map_publish', { channel: 'none:1', key: 'a', data: 1 }, 102],
    ['map_publish', { channel: 'stream:1', key: 'a', data: 1 }, 107],
    ['map_remove', { channel: 'map:1' }, 107],
    ['map_remove', { key: 'a' }, 107],
    ['map_remove', { channel: 'map:1', key: long }, 107],
    ['map_remove', { channel: 'stream:1', key: 'a' }, 107],
    ['map_remove', { channel: 'none:1', key: 'a' }, 102],
    ['map_read_state', { limit: 1 }, 107],
    ['map_read_state', { channel: 'map:1', limit: 'all' }, 107],
    ['map_read_state', { channel: 'map:1', revision_offset: -1 }, 107],
    ['map_read_state', { channel: 'stream:1' }, 107],
    ['map_read_stream', { channel: 'none:1' }, 102],
    ['map_read_stream', { channel: 'stream:1' }, 107],
    ['map_read_stream', { channel: 'map:1', reverse: true, since_epoch: 'epoch1' }, 107],
    ['map_stats', {}, 107],
    ['map_stats', { channel: 'stream:1' }, 107],
    ['map_clear', { channel: 'none:1' }, 102],
    ['map_clear', { channel: 'stream:1' }, 107],
    ['publish', { channel: 'map:1', data: 1 }, 107],
    ['subscribe', { channel: 'map:1', user: 'u' }, 107],
    ['history', { channel: 'map:1', limit: 1 }, 108],
    ['history_remove', { channel: 'map:1' }, 108],
    ['presence', { channel: 'map:1' }, 108],
    ['presence_stats', { channel: 'map:1' }, 108]
  ]
  for (const [method, request, code] of cases)
    t.equal(await call(method, request), code, `${method} ${JSON.stringify(request).slice(0, 80)}`)

  t.same(await call('map_read_state', { channel: 'map:1' }), { epoch: 'epoch1' })
})

t.test('a broadcast fails on its maps only', async (t) => {
  const { call } = setUp()
  const rejected = { error: { code: 107, message: 'bad request: the channel is a map' } }
  for (const count of [1, 100]) {
    const streams = Array.from({ length: count }, (_, index) => `stream:${index}`)
    const { responses } = (await call('broadcast', { channels: ['map:1', ...streams], data: 1 })) as {
      responses: unknown[]
    }
    t.same(responses[0], rejected)
    t.match(responses[1], { result: { epoch: /epoch/ } })
  }
})

t.test('a map has no more keys than max_keys', async (t) => {
  const { write } = setUp()
  for (let key = 0; key < 50; key++) t.match(await write(String(key)), { offset: key + 1 })
  t.equal(await write('more'), 106)

  t.match(await write('7'), { offset: 51 })
})

t.test('data in base64 is stored in the format of the namespace', async (t) => {
  const { call } = setUp()
  const b64data = Buffer.from('{"a":1}').toString('base64')
  await call('map_publish', { channel: 'object:1', key: 'a', b64data })
  await call('map_publish', { channel: 'bytes:1', key: 'a', b64data })
  await call('map_publish', { channel: 'bytes:1', key: 'empty' })

  t.match(await call('map_read_state', { channel: 'object:1', key: 'a' }), { entries: [{ data: { a: 1 } }] })
  t.match(await call('map_read_state', { channel: 'bytes:1', limit: 9 }), {
    entries: [
      { key: 'a', b64data },
      { key: 'empty', b64data: '' }
    ]
  })
})

t.test('delta_publish applies to maps', async (t) => {
  const { call, delivered } = setUp()
  await call('map_publish', { channel: 'deltas:1', key: 'a', data: 1 })
  await call('map_publish', { channel: 'deltas:1', key: 'a', data: 2 })

  t.match(delivered, [{ delta: true }, { delta: true, previous: { data: '1' } }])
})

t.test('map_read_state returns pages, one key, or the position only', async (t) => {
  const { call, write } = setUp()
  for (const key of ['a', 'b', 'c']) await write(key)
  const read = (more: Request) => call('map_read_state', { channel: 'map:1', ...more })
  const position = { epoch: 'epoch1', offset: 3 }
  t.same(await read({}), position)
  t.match(await read({ limit: 2 }), { ...position, cursor: 'b', entries: [{ key: 'a' }, { key: 'b' }] })
  t.match(await read({ limit: 2, cursor: 'b', asc: true }), { ...position, cursor: undefined, entries: [{ key: 'c' }] })
  t.match(await read({ limit: -1, cursor: '\u{10ffff}' }), { ...position, entries: undefined })
  t.match(await read({ key: 'b', limit: 2 }), { ...position, cursor: undefined, entries: [{ key: 'b', offset: 2 }] })
  t.same(await read({ key: 'z' }), position)
})

t.test(
  'a page of an earlier revision has the newest entries, and one of another epoch or none is error 112',
  async (t) => {
    const { call, write } = setUp()
    for (const key of ['a', 'b', 'c']) await write(key)
    await write('b')
    const read = (more: Request) => call('map_read_state', { channel: 'map:1', limit: 10, ...more })
    const all = await read({})
    t.match(all, { entries: { length: 3 } })
    t.same(await read({ revision_offset: 3, revision_epoch: 'epoch1' }), all)
    t.same(await read({ revision_epoch: 'epoch1' }), all)

    t.equal(await read({ revision_offset: 3, revision_epoch: 'other' }), 112)
    t.equal(await read({ revision_offset: 3 }), 112)
    t.equal(await read({ revision_offset: 3, key: 'a' }), 112)
  }
)

t.test('map_read_state reads many keys in several steps', async (t) => {
  const file = { channel: { namespaces: [{ name: 'map', subscription_type: 'map', map: { mode: 'persistent' } }] } }
  const { relay, engine } = coreRelay(file)
  const dispatcher = new ApiDispatcher(relay, UNWATCHED, SILENT)
  for (let key = 0; key < 2_500; key++)
    await dispatcher.runMethod('map_publish', Buffer.from(`{"channel":"map:1","key":"${key}","data":1}`))
  const limits: number[] = []
  const readState = engine.maps.readState.bind(engine.maps)
  engine.maps.readState = (channel, range, options) => {
    limits.push(range.limit)
    return readState(channel, range, options)
  }
  const read = async (limit: number) => {
    const reply = await dispatcher.runMethod('map_read_state', Buffer.from(`{"channel":"map:1","limit":${limit}}`))
    return JSON.parse(String(reply)).result
  }
  const all = await read(-1)
  t.equal(new Set(all.entries.map(({ key }: { key: string }) => key)).size, 2_500)
  t.notOk(all.cursor)
  const some = await read(1_200)
  t.equal(some.entries.length, 1_200)
  t.equal(some.cursor, some.entries[1_199].key)

  t.same(limits, [1000, 1000, 1000, 1000, 200])
})

t.test('a response with too many entries is rejected', async (t) => {
  const { call, dispatcher, write } = setUp()
  const data = 'x'.repeat(1024 * 1024)
  for (let key = 0; key < 20; key++) await write(String(key), { data })
  t.equal(await call('map_read_state', { channel: 'map:1', limit: -1 }), 106)
  t.match(await call('map_read_state', { channel: 'map:1', limit: 10 }), { entries: { length: 10 } })
  const body = Buffer.from(
    JSON.stringify({ commands: Array(4).fill({ map_read_stream: { channel: 'map:1', limit: -1 } }) })
  )
  const { replies } = JSON.parse(String(await dispatcher.runMethod('batch', body)))
  t.match(replies[3], { error: { code: 106 } })
})

t.test('map_read_stream returns the changes after a position, and error 112 if some are missing', async (t) => {
  const { call, write } = setUp()
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await write(key)
  await call('map_remove', { channel: 'map:1', key: 'b' })
  const read = (more: Request) => call('map_read_stream', { channel: 'map:1', limit: -1, ...more })
  t.same(await read({ limit: 0 }), { epoch: 'epoch1', offset: 7 })
  const { entries } = (await read({ since_offset: 5, since_epoch: 'epoch1' })) as { entries: unknown[] }
  t.match(entries, [
    { key: 'f', data: 1, offset: 6 },
    { key: 'b', removed: true, offset: 7 }
  ])
  t.notOk(Object.hasOwn(entries[1] as object, 'data'))
  t.match(await read({ since_offset: 2 }), { entries: { length: 5 } })
  t.match(await read({ since_offset: 7 }), { entries: undefined })
  t.match(await read({ limit: 2, reverse: true }), { entries: [{ offset: 7 }, { offset: 6 }] })
  t.match(await read({ limit: 2, reverse: true, since_offset: 8 }), { entries: [{ offset: 7 }, { offset: 6 }] })

  t.equal(await read({ since_offset: 1 }), 112, 'no longer stored')
  t.equal(await read({ since_epoch: 'epoch1' }), 112, 'after offset 0')
  t.equal(await read({ since_offset: 8 }), 112, 'beyond the end')
  t.equal(await read({ reverse: true, since_offset: 9 }), 112, 'no change before the position')
  t.equal(await read({ since_offset: 6, since_epoch: 'other' }), 112)
})

t.test('map_clear empties the map and begins a new epoch', async (t) => {
  const { call, write } = setUp()
  await write('a')
  t.same(await call('map_stats', { channel: 'map:1' }), { num_keys: 1 })
  t.same(await call('map_clear', { channel: 'map:1' }), {})
  t.same(await call('map_stats', { channel: 'map:1' }), {})

  t.match(await write('a'), { epoch: /^epoch(?!1$)/, offset: 1 })
})

t.test('batches and commands with a method name contain methods of maps', async (t) => {
  const { dispatcher } = setUp()
  const publish = { channel: 'map:1', key: 'a', data: 1 }
  const batch = { commands: [{ map_publish: publish }, { map_stats: { channel: 'map:1' } }, { map_remove: {} }] }
  const reply = await dispatcher.runMethod('batch', Buffer.from(JSON.stringify(batch)))
  t.match(JSON.parse(String(reply)).replies, [
    { map_publish: { offset: 1 } },
    { map_stats: { num_keys: 1 } },
    { error: { code: 107 } }
  ])
  const commands = [
    { id: 1, method: 'map_publish', params: { ...publish, key: 'b' } },
    { id: 2, method: 'map_clear', params: { channel: 'map:1' } }
  ]
  const lines = await dispatcher.runCommands(Buffer.from(commands.map((each) => JSON.stringify(each)).join('\n')))

  t.match(
    String(lines)
      .split('\n')
      .map((line) => JSON.parse(line)),
    [
      { id: 1, result: { offset: 2 } },
      { id: 2, result: {} }
    ]
  )
})

t.test('calls for maps are counted', async (t) => {
  const counted: string[] = []
  const { relay, engine, clock } = coreRelay(FILE, {
    metrics: {
      ...NO_METRICS,
      engineAction: (action, namespace) => void counted.push(`${action} ${namespace}`),
      messageSent: (type, namespace) => void counted.push(`${type} ${namespace}`),
      mapSuppressed: (change, namespace, reason) => void counted.push(`${change} ${namespace} ${reason}`),
      mapKeysExpired: (keys, lagSeconds) => void counted.push(`expired ${keys} ${lagSeconds}`),
      mapExpiryFailed: () => void counted.push('expiry failed')
    }
  })
  const dispatcher = new ApiDispatcher(relay, UNWATCHED, SILENT)
  const call = (method: string, request: Request) =>
    dispatcher.runMethod(method, Buffer.from(JSON.stringify({ channel: 'map:1', ...request })))
  await call('map_publish', { key: 'a', data: 1 })
  await call('map_publish', { key: 'a', data: 1, key_mode: 'if_new' })
  await call('map_remove', { key: 'b' })
  await call('map_read_state', {})
  await call('map_read_stream', {})
  await call('map_stats', {})
  clock.nowMs += 62_000
  await relay.maps.expire()
  await relay.maps.expire()
  await call('map_clear', {})
  engine.maps.expire = () => Promise.reject(new Error('broken'))
  await relay.maps.expire()

  t.same(counted, [
    'map_publish map',
    'map_publication map',
    'map_publish map',
    'publish map key_exists',
    'map_remove map',
    'remove map key_not_found',
    'map_state_read map',
    'map_stream_read map',
    'map_stats map',
    'expired 1 2',
    'map_clear map',
    'expiry failed'
  ])
})

t.test('a relay without maps expires nothing', async (t) => {
  const { relay, engine } = coreRelay()
  let calls = 0
  engine.maps.expire = async () => ({ keys: calls++, lagMs: 0 })
  await relay.maps.expire()

  t.equal(calls, 0)
})
