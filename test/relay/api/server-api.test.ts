import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import type { Message } from '../../helper/http.js'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY } from '../../helper/relay-rules.js'

const WITH_HISTORY = { history_size: 10, history_ttl: '60s' }
const FILE = {
  channel: {
    without_namespace: {},
    namespaces: [
      {
        name: 'kept',
        allow_subscribe_for_client: true,
        publication_data_format: 'json',
        ...WITH_HISTORY,
        presence: true,
        force_recovery: true
      },
      { name: 'plain', allow_subscribe_for_client: true },
      { name: 'bytes', publication_data_format: 'binary', ...WITH_HISTORY },
      { name: 'typed', schema: 'PositionBatch' }
    ]
  }
}

t.test('the API key', async (t) => {
  const { url } = await startRelay(t, FILE)
  const call = (path: string, headers: Record<string, string>) =>
    send(url, path, { method: 'POST', body: '{"channel":"kept:1","data":1}', headers })

  const cases: [title: string, path: string, headers: Record<string, string>, status: number][] = [
    ['a key in X-API-Key', '/api/publish', { 'x-api-key': API_KEY }, 200],
    ['a key in Authorization', '/api/publish', { authorization: `apikey ${API_KEY}` }, 200],
    ['a key in the query', `/api/publish?api_key=${encodeURIComponent(API_KEY)}`, {}, 200],
    ['a missing key', '/api/publish', {}, 401],
    ['a wrong key', '/api/publish', { 'x-api-key': `${API_KEY}x` }, 401],
    ['an empty key', '/api/publish', { 'x-api-key': '' }, 401],
    [
      'a wrong key in X-API-Key beside a valid Authorization',
      '/api/publish',
      { 'x-api-key': 'x', authorization: `apikey ${API_KEY}` },
      401
    ],
    ['a key as a bearer token', '/api/publish', { authorization: `Bearer ${API_KEY}` }, 401],
    ['a missing key for an unknown method', '/api/nope', {}, 401]
  ]
  for (const [title, path, headers, status] of cases) {
    t.test(`${title} gets ${status}`, async (t) => {
      const response = await call(path, headers)

      t.equal(response.status, status)
      if (status === 401) t.equal(response.body, '')
    })
  }

  t.test('with http_api.insecure no key is required', async (t) => {
    const { url } = await startRelay(t, { ...FILE, http_api: { insecure: true } })

    t.equal((await send(url, '/api/publish', { method: 'POST', body: '{"channel":"plain:1","data":1}' })).status, 200)
  })
})

t.test('API calls', async (t) => {
  const { api, url } = await startRelay(t, FILE)
  const EPOCH = /^[0-9a-f]{8}$/

  const cases: [method: string, request: unknown, reply: object][] = [
    ['publish', { channel: 'kept:1', data: {} }, { result: { offset: 1, epoch: EPOCH } }],
    ['publish', { channel: 'plain:1', data: null }, { result: {} }],
    ['publish', { channel: 'bare', data: 0 }, { result: {} }],
    ['publish', { channel: 'kept:skip', data: 1, skip_history: true }, { result: {} }],
    ['publish', { channel: 'kept:b64', b64data: 'eyJhIjoxfQ==', data: 2 }, { result: { offset: 1 } }],
    ['publish', {}, { error: { code: 107, message: 'bad request: channel is missing' } }],
    ['publish', { channel: '' }, { error: { code: 107, message: 'bad request: channel is missing' } }],
    ['publish', { channel: 'plain:1', b64data: 'e30x' }, { result: {} }],
    ['publish', { channel: 'plain:1', b64data: '', data: 1 }, { result: {} }],
    ['publish', { channel: 'plain:1', b64data: '' }, { error: { code: 107, message: 'bad request: data is missing' } }],
    ['publish', { channel: 'kept:1' }, { error: { code: 107, message: 'bad request: data is missing' } }],
    ['publish', { channel: 'plain:1' }, { error: { code: 107, message: 'bad request: data is missing' } }],
    ['publish', { channel: 'bytes:1' }, { result: { offset: 1 } }],
    ['publish', { channel: 'bytes:1', b64data: '' }, { result: { offset: 2 } }],
    ['publish', { channel: 'bytes:1', b64data: '_w==' }, { error: { code: 107, message: /b64data must be base64/ } }],
    ['publish', { channel: 'bytes:1', b64data: '!' }, { error: { code: 107, message: /b64data must be base64/ } }],
    [
      'broadcast',
      { channels: ['bytes:2', 'plain:1'] },
      { result: { responses: [{ result: { offset: 1 } }, { error: { code: 107 } }] } }
    ],
    [
      'publish',
      '{"channel":"kept:1","data":1,"data":2}',
      { error: { code: 107, message: 'bad request: data must be there once' } }
    ],
    [
      'publish',
      { channel: 'kept:1', b64data: 'e30x' },
      { error: { code: 107, message: 'bad request: data must be JSON' } }
    ],
    ['publish', { channel: 'nope:1', data: 1 }, { error: { code: 102, message: 'unknown channel' } }],
    ['publish', null, { error: { code: 107, message: 'bad request: channel is missing' } }],
    ['channels', null, { result: { channels: {} } }],
    [
      'broadcast',
      { channels: ['kept:2', 'nope:1', '', 'plain:1'], data: 1 },
      {
        result: {
          responses: [{ result: { offset: 1 } }, { error: { code: 102 } }, { error: { code: 107 } }, { result: {} }]
        }
      }
    ],
    ['broadcast', { channels: [], data: 1 }, { error: { code: 107 } }],
    ['presence', { channel: 'kept:1' }, { result: { presence: {} } }],
    [
      'presence',
      { channel: 'plain:1' },
      { error: { code: 108, message: 'not available: the namespace needs the option presence' } }
    ],
    ['presence', {}, { error: { code: 107 } }],
    ['presence_stats', { channel: 'kept:1' }, { result: { num_clients: 0, num_users: 0 } }],
    ['presence_stats', { channel: 'nope:1' }, { error: { code: 102 } }],
    ['history', { channel: 'kept:new' }, { result: { publications: [], offset: 0, epoch: EPOCH } }],
    ['history', { channel: 'plain:1' }, { error: { code: 108 } }],
    [
      'history',
      { channel: 'kept:1', since: { offset: 1, epoch: 'x' } },
      { error: { code: 112, message: 'unrecoverable position' } }
    ],
    ['history_remove', { channel: 'kept:1' }, { result: {} }],
    ['history_remove', { channel: 'plain:1' }, { error: { code: 108 } }],
    ['channels', {}, { result: { channels: {} } }],
    ['channels', { pattern: 'a[' }, { error: { code: 107, message: /pattern must be a glob/ } }],
    [
      'info',
      {},
      {
        result: {
          nodes: [
            { uid: /./, name: 'relay', version: 'test', num_clients: 0, num_users: 0, num_subs: 0, num_channels: 0 }
          ]
        }
      }
    ],
    ['rpc', { method: 'x' }, { error: { code: 104, message: 'not found' } }],
    ['disconnect', { user: 'nobody' }, { result: {} }],
    ['disconnect', { user: '1', disconnect: { code: 200, reason: 'x' } }, { error: { code: 107 } }],
    ['disconnect', { user: '1', disconnect: { code: 4000, reason: '' } }, { error: { code: 107 } }],
    ['disconnect', { user: '1', disconnect: { code: 4000, reason: '"again"' } }, { error: { code: 107 } }],
    ['disconnect', { user: '1', disconnect: { code: 4000, reason: 'x'.repeat(124) } }, { error: { code: 107 } }],
    ['unsubscribe', { user: 'nobody', channel: 'kept:1' }, { result: {} }],
    ['unsubscribe', { user: 'nobody', channel: 'nope:1' }, { error: { code: 102 } }],
    ['unsubscribe', { user: 'nobody' }, { error: { code: 107, message: 'bad request: channel is missing' } }],
    ['unsubscribe', { user: 'nobody', channel: '' }, { error: { code: 107 } }],
    ['unsubscribe', { user: 'nobody', channel: null }, { error: { code: 107 } }],
    ['subscribe', { user: 'nobody', channel: 'kept:1', override: { presence: {}, join_leave: null } }, { result: {} }],
    ['subscribe', { user: 'nobody', channel: 'kept:1' }, { result: {} }],
    ['subscribe', { user: 'nobody', channel: 'kept:1', expire_at: 1 }, { result: {} }],
    ['subscribe', { user: 'nobody' }, { error: { code: 107 } }],
    ['refresh', { user: 'nobody' }, { result: {} }],
    ['batch', { commands: [] }, { replies: [] }],
    ['batch', {}, { error: { code: 107 } }],
    [
      'batch',
      {
        commands: [
          { publish: { channel: 'kept:9', data: [1, 2] } },
          { dance: {} },
          7,
          {},
          { publish: { channel: 'nope:1', data: 1 } },
          { channels: {} }
        ]
      },
      {
        replies: [
          { publish: { offset: 1 } },
          { error: { code: 104 } },
          { error: { code: 104 } },
          { error: { code: 104 } },
          { error: { code: 102 } },
          { channels: { channels: {} } }
        ]
      }
    ]
  ]
  for (const [method, request, reply] of cases) {
    t.test(`${method} ${JSON.stringify(request)?.slice(0, 90)} is ${JSON.stringify(reply).slice(0, 60)}`, async (t) => {
      const response = await api(method, typeof request === 'string' ? request : JSON.stringify(request))

      t.equal(response.status, 200)
      t.match(JSON.parse(response.body), reply)
      t.equal(response.headers['content-type'], 'application/json')
    })
  }

  const malformed: [title: string, path: string, message: Message, status: number][] = [
    ['no JSON', '/api/publish', { body: '{"channel":' }, 400],
    ['an empty body', '/api/publish', { body: '' }, 400],
    ['an empty body of commands', '/api', { body: '' }, 400],
    ['blank commands', '/api', { body: ' \n ' }, 400],
    ['commands that are no JSON', '/api', { body: '{"method":"info"}\n{"method"' }, 400],
    ['commands that are no objects', '/api', { body: '[1]' }, 400],
    ['a GET', '/api/publish', { method: 'GET' }, 405],
    ['a PUT', '/api', { method: 'PUT', body: '{}' }, 405],
    ['a body over the limit', '/api/publish', { body: 'x'.repeat(1024 * 1024 + 1) }, 413],
    ['an unknown method', '/api/dance', { body: '{}' }, 404],
    ['an unknown method and a body that is no JSON', '/api/dance', { body: '{' }, 404],
    ['a name that every object has', '/api/toString', { body: '{}' }, 404],
    ['the name of the prototype', '/api/__proto__', { body: '{}' }, 404],
    ['no method', '/api/', { body: '{}' }, 404]
  ]
  for (const [title, path, message, status] of malformed) {
    t.test(`a call with ${title} receives ${status}`, async (t) => {
      const response = await send(url, path, { method: 'POST', ...message, headers: { 'x-api-key': API_KEY } })

      t.equal(response.status, status)
    })
  }

  const mistyped: [method: string, request: unknown, problem: string][] = [
    ['publish', { channel: 7, data: 1 }, 'channel must be text'],
    ['publish', { channel: ['kept:1'], data: 1 }, 'channel must be text'],
    ['publish', { channel: 'kept:1', data: 1, tags: [] }, 'tags must be an object of texts'],
    ['publish', { channel: 'kept:1', data: 1, tags: { a: 1 } }, 'tags must be an object of texts'],
    ['publish', { channel: 'kept:1', data: 1, version: -1 }, 'version must be a whole number'],
    ['publish', { channel: 'kept:1', data: 1, version: 1.5 }, 'version must be a whole number'],
    ['publish', { channel: 'kept:1', data: 1, version: '1' }, 'version must be a whole number'],
    ['publish', { channel: 'kept:1', data: 1, skip_history: 'yes' }, 'skip_history must be true or false'],
    ['publish', { channel: 'kept:1', b64data: 1 }, 'b64data must be text'],
    ['publish', { channel: 'kept:1', data: 1, idempotency_key: 1 }, 'idempotency_key must be text'],
    ['publish', [], 'the request must be an object'],
    ['publish', true, 'the request must be an object'],
    ['publish', '"text"', 'the request must be an object'],
    ['broadcast', { channels: 'kept:1', data: 1 }, 'channels must be a list of texts'],
    ['broadcast', { channels: [1], data: 1 }, 'channels must be a list of texts'],
    ['history', { channel: 'kept:1', since: 'x' }, 'since must be an object with offset and epoch'],
    ['history', { channel: 'kept:1', since: { offset: -1 } }, 'since must be an object with offset and epoch'],
    ['history', { channel: 'kept:1', limit: 'all' }, 'limit must be a whole number'],
    ['history', { channel: 'kept:1', reverse: 1 }, 'reverse must be true or false'],
    ['channels', { pattern: 7 }, 'pattern must be text'],
    ['presence', { channel: {} }, 'channel must be text'],
    ['disconnect', { user: 1 }, 'user must be text'],
    ['disconnect', { user: '1', whitelist: 'c' }, 'whitelist must be a list of texts'],
    ['disconnect', { user: '1', disconnect: 7 }, 'disconnect must be an object with code and reason'],
    ['disconnect', { user: '1', disconnect: { code: '3000' } }, 'disconnect.code must be a whole number'],
    ['disconnect', { user: '1', disconnect: { code: 3000, reason: 1 } }, 'disconnect.reason must be text'],
    [
      'subscribe',
      { user: 'nobody', channel: 'kept:1', override: { presence: true } },
      'override must be an object of {"value": true or false}'
    ],
    ['refresh', { user: 'nobody', expire_at: 'soon' }, 'expire_at must be a whole number'],
    ['unsubscribe', { user: 'nobody', channel: 7 }, 'channel must be text'],
    ['batch', { commands: {} }, 'commands must be a list'],
    ['batch', [], 'the request must be an object']
  ]
  for (const [method, request, problem] of mistyped) {
    const text = typeof request === 'string' ? request : JSON.stringify(request)
    t.test(`${method} ${text.slice(0, 90)} has a wrong JSON type and receives 400`, async (t) => {
      for (const headers of [{}, { 'x-centrifugo-error-mode': 'transport' }]) {
        const response = await api(method, text, { headers })
        t.same([response.status, response.body], [400, `${problem}\n`])
      }
    })
  }

  t.test('a wrong JSON type in one of several commands is error 107 of this command', async (t) => {
    const error = { code: 107, message: 'bad request: channel must be text' }
    const batch = await api('batch', { commands: [{ presence: { channel: 7 } }, { channels: {} }] })
    t.match([batch.status, JSON.parse(batch.body)], [200, { replies: [{ error }, { channels: {} }] }])
    const command = await api('', { method: 'presence', params: { channel: 7 } })
    t.match([command.status, JSON.parse(command.body)], [200, { error }])
  })

  t.test('a chunked body above the limit receives 413', async (t) => {
    const response = await send(url, '/api/publish', {
      method: 'POST',
      body: 'x'.repeat(3 * 1024 * 1024),
      headers: { 'x-api-key': API_KEY, 'transfer-encoding': 'chunked' }
    })

    t.equal(response.status, 413)
  })

  t.test('deeply nested data is published', async (t) => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const response = await api('publish', `{"channel":"kept:deep","data":${deep}}`)

    t.match(JSON.parse(response.body), { result: { offset: 1 } })
    t.ok((await api('history', { channel: 'kept:deep', limit: 1 })).body.includes(deep))
  })

  t.test('with the transport error mode errors are HTTP statuses', async (t) => {
    const statuses: [method: string, request: unknown, status: number][] = [
      ['publish', { channel: 'nope:1', data: 1 }, 404],
      ['publish', {}, 400],
      ['rpc', { method: 'x' }, 404],
      ['presence', { channel: 'plain:1' }, 400],
      ['history', { channel: 'kept:1', since: { offset: 1, epoch: 'x' } }, 416]
    ]
    for (const [method, request, status] of statuses) {
      const response = await api(method, request, { headers: { 'x-centrifugo-error-mode': 'transport' } })
      t.equal(response.status, status)
      t.match(JSON.parse(response.body), { code: Number, message: String })
    }
  })

  t.test('errors of single commands and channels have no status, also with the transport error mode', async (t) => {
    const headers = { 'x-centrifugo-error-mode': 'transport' }
    const rejected = { channel: 'nope:1', data: 1 }
    const responses = await Promise.all([
      api('broadcast', { channels: ['nope:1'], data: 1 }, { headers }),
      api('batch', { commands: [{ publish: rejected }] }, { headers }),
      api('', { method: 'publish', params: rejected }, { headers })
    ])

    for (const { status, body } of responses) t.match([status, body], [200, '"error":{"code":102'])
  })
})

t.test('with the transport error mode a publication during an outage of Redis has the status 500', async (t) => {
  const redis = await startRedis(t)
  const { api, url } = await startRelay(t, FILE, { RELAY_ENGINE: 'redis', REDIS_URL: redis.url })
  await redis.kill()
  await eventually(async () => (await send(url, '/health')).status === 503)
  const message = { headers: { 'x-centrifugo-error-mode': 'transport' } }
  const { status, body } = await api('publish', { channel: 'kept:1', data: 1 }, message)

  t.match([status, JSON.parse(body)], [500, { code: 100 }])
})

t.test('a request cannot turn off the transport error mode of the config file', async (t) => {
  const { api } = await startRelay(t, { ...FILE, http_api: { error_mode: 'transport' } })
  for (const mode of ['default', '', 'Transport']) {
    const message = { headers: { 'x-centrifugo-error-mode': mode } }
    t.equal((await api('publish', { channel: 'nope:1', data: 1 }, message)).status, 404)
  }
})

t.test('commands of POST /api', async (t) => {
  const { api } = await startRelay(t, FILE)

  t.test('commands receive one line each, in order', async (t) => {
    const body = [
      '{"method":"publish","params":{"channel":"kept:1","data":{"a": 1}}}',
      '{"id":7,"method":"PRESENCE_STATS","params":{"channel":"kept:1"}}',
      '{"id":8,"method":9}',
      '{"method":"dance","params":{}} {"method":8,"params":null}'
    ].join('\n')
    const replies = (await api('', body)).body.split('\n').map((line) => JSON.parse(line))

    t.match(replies, [
      { result: { offset: 1 } },
      { id: 7, result: { num_clients: 0 } },
      { id: 8, result: { nodes: [{}] } },
      { error: { code: 104 } },
      { result: { channels: {} } }
    ])
  })

  t.test('commands publish data without changing its bytes', async (t) => {
    const { api, url } = await startRelay(t, FILE)
    const client = await connectedClient(t, url)
    await client.request({ id: 2, subscribe: { channel: 'plain:1' } })
    const text = new Promise((resolve) => client.ws.once('message', (data) => resolve(data.toString())))
    await api(
      '',
      '{"method":"publish","params":{ "data" : {"n":1.0,\n "big":12345678901234567890} ,"channel":"plain:1"}}'
    )

    t.equal(await text, '{"push":{"channel":"plain:1","pub":{"data":{"n":1.0,  "big":12345678901234567890}}}}')
  })
})

t.test('the publish method', async (t) => {
  t.test('publications with the same idempotency key are published once', async (t) => {
    const { api, advance } = await startRelay(t, FILE)
    const twice = { channel: 'kept:1', data: 1, idempotency_key: 'k' }
    const results = [await api('publish', twice), await api('publish', twice)].map(({ body }) => JSON.parse(body))
    t.same(results[0], results[1])
    t.match(results[0], { result: { offset: 1 } })
    t.match(JSON.parse((await api('publish', { ...twice, channel: 'kept:2' })).body), { result: { offset: 1 } })
    advance(5 * 60 * 1000)

    t.match(JSON.parse((await api('publish', twice)).body), { result: { offset: 2 } })
  })

  t.test('a publication with an older version is not published', async (t) => {
    const { api } = await startRelay(t, FILE)
    const offsets: unknown[] = []
    for (const [version, version_epoch] of [
      [5, ''],
      [5, ''],
      [4, ''],
      [6, ''],
      [1, 'new'],
      [1, 'new']
    ]) {
      offsets.push(
        JSON.parse((await api('publish', { channel: 'kept:1', data: 1, version, version_epoch })).body).result.offset
      )
    }

    t.same(offsets, [1, 1, 1, 2, 3, 3])
  })

  t.test('a publication contains its tags', async (t) => {
    const { api, url } = await startRelay(t, FILE)
    const client = await connectedClient(t, url)
    await client.request({ id: 2, subscribe: { channel: 'plain:1' } })
    await api('publish', { channel: 'plain:1', data: 1, tags: { cell: '12' } })

    t.same(await client.next(), { push: { channel: 'plain:1', pub: { data: 1, tags: { cell: '12' } } } })
  })

  t.test('a publication that does not match the schema is rejected with the name of the field', async (t) => {
    const { api } = await startRelay(t, FILE)
    const entry = { transmitterId: 't1', position: { x: 1, y: 2 }, positionMethod: 'trilateration', floorId: 'f' }
    const valid = { type: 'position-batch', data: [entry] }

    t.match(JSON.parse((await api('publish', { channel: 'typed:1', data: valid })).body), { result: {} })
    t.match(
      JSON.parse(
        (await api('publish', { channel: 'typed:1', data: { ...valid, data: [{ ...entry, transmitterId: [] }] } })).body
      ),
      {
        error: { code: 107, message: /^bad request: data\.data\.0\.transmitterId does not fit PositionBatch: / }
      }
    )
    t.match(JSON.parse((await api('publish', { channel: 'typed:1', data: 7 })).body), { error: { code: 107 } })
  })
})

t.test('the history and channels methods', async (t) => {
  t.test('history, presence and channels return the current state', async (t) => {
    const { api, url, publish } = await startRelay(t, FILE)
    const client = await connectedClient(t, url)
    await client.request({ id: 2, subscribe: { channel: 'kept:1' } })
    await client.request({ id: 3, subscribe: { channel: 'plain:2' } })
    await publish('kept:1', { a: 1 })

    t.match(JSON.parse((await api('history', { channel: 'kept:1', limit: -1 })).body), {
      result: { publications: [{ data: { a: 1 }, offset: 1 }], offset: 1 }
    })
    t.same(JSON.parse((await api('channels', {})).body).result.channels, {
      'kept:1': { num_clients: 1 },
      'plain:2': { num_clients: 1 }
    })
    t.same(Object.keys(JSON.parse((await api('channels', { pattern: 'k*:?' })).body).result.channels), ['kept:1'])
    t.same(JSON.parse((await api('channels', { pattern: '**x*' })).body).result.channels, {})
    t.same(Object.keys(JSON.parse((await api('channels', { pattern: '{x,kept}:[!2]' })).body).result.channels), [
      'kept:1'
    ])
    t.match(JSON.parse((await api('presence', { channel: 'kept:1' })).body).result.presence, {})
    const [node] = JSON.parse((await api('info', {})).body).result.nodes
    t.match(node, { num_clients: 1, num_users: 1, num_subs: 2, num_channels: 2, process: { rss: Number } })
    t.same(['metrics' in node, 'cpu' in node.process], [false, false], 'no constants')
    await api('history_remove', { channel: 'kept:1' })
    t.match(JSON.parse((await api('history', { channel: 'kept:1', limit: -1 })).body), {
      result: { publications: [], offset: 1 }
    })
  })
})

t.test('the disconnect method', async (t) => {
  t.test('disconnect closes the clients of one user except for the whitelist', async (t) => {
    const { api, url, relay } = await startRelay(t, FILE)
    const [first, second, other] = [
      await connectedClient(t, url, '1'),
      await connectedClient(t, url, '1'),
      await connectedClient(t, url, '2')
    ]
    const excluded = relay.clients.find(({ user }) => user === '1')
    await api('disconnect', { user: '' })
    await api('disconnect', { user: '1', whitelist: [excluded?.id], disconnect: { code: 4500, reason: 'go' } })

    t.equal(await second.closed, '4500 go')
    t.equal(relay.stats().clients, 2)
    t.ok(first && other)
  })
})
