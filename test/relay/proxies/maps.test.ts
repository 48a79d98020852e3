import t from 'tap'
import { type Answer, RawAnswer, RESET, startEventBackend } from '../../helper/event-backend.js'
import { eventually } from '../../helper/eventually.js'
import type { Json } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { mapPublisher } from '../../helper/shown-map.js'
import { CODECS, connectedWithToken } from './fixture.js'

const TIMEOUT = '30s'

t.test('writes and removals of clients on maps', async (t) => {
  const backend = await startEventBackend(t)
  const proxied = { publish_proxy_enabled: true, remove_proxy_enabled: true }
  const to = (event: string) => ({ endpoint: backend.endpoint(event), timeout: TIMEOUT, include_connection_meta: true })
  const edge = await startRelay(t, {
    channel: {
      proxy: { map_publish: to('map_publish'), map_remove: to('map_remove') },
      namespaces: [
        {
          name: 'map',
          subscription_type: 'map',
          allow_subscribe_for_client: true,
          allow_tags_filter: true,
          map: { mode: 'persistent', ...proxied }
        },
        { name: 'short', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '60s', ...proxied } },
        {
          name: 'bytes',
          subscription_type: 'map',
          publication_data_format: 'binary',
          map: { mode: 'persistent', ...proxied }
        },
        {
          name: 'objects',
          subscription_type: 'map',
          publication_data_format: 'json_object',
          map: { mode: 'persistent', publish_proxy_enabled: true, allow_remove_for_client: true }
        }
      ]
    }
  })
  t.beforeEach(() => backend.reset())

  const write = (channel: string, more: Json = {}): Json => ({
    id: 2,
    publish: { type: 1, channel, key: 'k', data: '1', ...more }
  })
  const removal = (channel: string, more: Json = {}): Json => ({
    id: 3,
    publish: { type: 1, channel, key: 'k', removed: true, ...more }
  })
  const entries = async (channel: string): Promise<readonly Json[]> => {
    const { body } = await edge.api('map_read_state', { channel, limit: -1 })
    return JSON.parse(body).result.entries ?? []
  }

  for (const codec of CODECS) {
    t.test(`the backend is asked about a write and a removal of a ${codec} client`, async (t) => {
      const channel = `map:${codec}`
      const client = await connectedWithToken(t, codec, edge.url, {
        sub: '42',
        meta: { team: 7 },
        info: { name: 'Ada' }
      })
      const reply = await client.request(write(channel, { data: '{"n":12345678901234567890}' }))
      t.match(reply, { id: 2, publish: {} })
      const [published] = backend.of('map_publish')
      t.match(published?.text, '"data":{"n":12345678901234567890}')
      t.match(published?.body, { user: '42', channel, key: 'k', protocol: codec, meta: { team: 7 } })
      t.match(await entries(channel), [{ key: 'k', offset: 1 }])

      t.match(await client.request(removal(channel)), { id: 3, publish: {} })
      const { user, channel: removedFrom, key, ...more } = backend.of('map_remove')[0]?.body ?? {}
      t.same([user, removedFrom, key], ['42', channel, 'k'])
      t.notOk('data' in more)
      t.same(await entries(channel), [])
    })

    t.test(`a ${codec} client receives the error or the disconnect of the backend`, async (t) => {
      const channel = `map:refused-${codec}`
      await mapPublisher(edge, channel).write('k', 1)
      for (const [event, command] of [
        ['map_publish', write(channel, { key: 'other' })],
        ['map_remove', removal(channel)]
      ] as const) {
        const client = await connectedWithToken(t, codec, edge.url)
        backend.on(event, { error: { code: 1001, message: 'not yours' } })
        t.match(await client.request(command), { error: { code: 1001, message: 'not yours' } })
        backend.on(event, { disconnect: { code: 4502, reason: 'spam' } })
        client.send(command)
        t.equal(await client.closed, '4502 spam')
      }
      t.match(await entries(channel), [{ key: 'k' }])
    })
  }

  t.test('the result changes the entry and its key', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url, { sub: '42', info: { name: 'Ada' } })
    await client.request({ id: 1, subscribe: { type: 1, channel: 'map:res', phase: 2 } })
    const publish = async (command: Json, answer: Answer): Promise<unknown> => {
      backend.on('map_publish', answer)
      client.send(command)
      const messages = [await client.next(), await client.next()]
      return messages.find((each) => each.push !== undefined)?.push?.pub
    }
    const unnamed = { id: 2, publish: { type: 1, channel: 'map:res', data: '{"own":1}' } }
    t.match(await publish(unnamed, new RawAnswer(200, '{"result":{"key":"seat-7","data":{"a":\n1e1}}}')), {
      key: 'seat-7',
      data: { a: 10 },
      offset: 1,
      info: { user: '42', conn_info: { name: 'Ada' } }
    })
    t.notOk('key' in (backend.of('map_publish')[0]?.body ?? {}), 'a client may leave the key to the backend')
    t.match(await publish(write('map:res'), { result: { tags: { kind: 'x' }, version: 5, score: 3 } }), {
      key: 'k',
      data: 1,
      tags: { kind: 'x' }
    })
    for (const result of [{ version: 5 }, { key_mode: 'if_new' }, { key: 'none', key_mode: 'if_exists' }]) {
      backend.on('map_publish', { result })
      t.match(await client.request(write('map:res', { data: '2' })), { publish: {} }, 'a suppressed write is no error')
    }
    t.match(await entries('map:res'), [
      { key: 'k', data: 1 },
      { key: 'seat-7', data: { a: 10 } }
    ])
    backend.on('map_remove', { result: { key: 'seat-7', tags: { kind: 'x' } } })
    client.send(removal('map:res'))
    const messages = [await client.next(), await client.next()]
    t.match(messages.find((each) => each.push !== undefined)?.push?.pub, { key: 'seat-7', removed: true })
    t.match(await entries('map:res'), [{ key: 'k' }])
  })

  t.test('a used idempotency key of the result suppresses the write and the removal', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('map_publish', { result: { idempotency_key: 'w' } })
    backend.on('map_remove', { result: { idempotency_key: 'r' } })
    await client.request(write('map:idem'))
    await client.request(write('map:idem', { data: '2' }))
    t.match(await entries('map:idem'), [{ data: 1 }])
    await client.request(removal('map:idem'))
    await mapPublisher(edge, 'map:idem').write('k', 3)
    await client.request(removal('map:idem'))
    t.match(await entries('map:idem'), [{ key: 'k' }])
  })

  t.test('these commands are refused without a request', async (t) => {
    const COMMANDS: readonly (readonly [title: string, command: Json, outcome: unknown])[] = [
      ['an unknown namespace', write('none:1'), 102],
      ['an invalid name', write('map:é'), 107],
      ['no data', { id: 2, publish: { type: 1, channel: 'map:1', key: 'k' } }, 107],
      ['data in another format', write('objects:1', { data: '[]' }), 107],
      ['a long key', write('map:1', { key: 'k'.repeat(1025) }), 107],
      ['a long key of a removal', removal('map:1', { key: 'k'.repeat(1025) }), 107],
      ['no channel', write(''), '3501 bad request'],
      ['a publication without a type', { id: 2, publish: { channel: 'map:1', data: '1' } }, 103]
    ]
    for (const [title, command, outcome] of COMMANDS) {
      const client = await connectedWithToken(t, 'json', edge.url)
      client.send(command)
      t.equal(await Promise.race([client.closed, client.next().then(({ error }) => error?.code)]), outcome, title)
    }
    t.same(backend.requests, [])
  })

  t.test('each of both events has its own switch, and the permission decides about the other', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    t.match(await client.request(write('objects:1', { data: '{}' })), { publish: {} })
    t.match(await client.request(removal('objects:1')), { publish: {} })
    t.same(
      backend.requests.map(({ event }) => event),
      ['map_publish']
    )
    await mapPublisher(edge, 'objects:1').write('k', {})
    t.equal(backend.requests.length, 1, 'the API is not asked about')
  })

  t.test('a failed call or an unusable result changes nothing', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    await mapPublisher(edge, 'map:kept').write('k', 1)
    const ANSWERS: readonly (readonly [answer: Answer, code: number])[] = [
      [new RawAnswer(500), 100],
      [RESET, 100],
      [{ result: { key_mode: 'sometimes' } }, 100],
      [{ result: { key: 7 } }, 100],
      [{ result: { tags: { a: 1 } } }, 100],
      [{ result: { key: 'k'.repeat(1025) } }, 107]
    ]
    for (const [answer, code] of ANSWERS) {
      backend.on('map_publish', answer)
      t.match(await client.request(write('map:kept', { data: '2' })), { error: { code } }, `write: ${String(answer)}`)
      if (typeof answer !== 'symbol' && 'result' in answer && Object.hasOwn(Object(answer.result), 'key_mode')) continue
      backend.on('map_remove', answer)
      t.match(await client.request(removal('map:kept')), { error: { code } }, `removal: ${String(answer)}`)
    }
    for (const event of ['map_publish', 'map_remove']) backend.on(event, {})
    t.match(await client.request(write('map:kept', { key: '' })), { error: { code: 107 } }, 'nobody chose a key')
    t.match(await client.request(removal('map:kept', { key: '' })), { error: { code: 107 } })
    backend.on('map_publish', { result: { version: 1 } })
    t.match(await client.request(write('short:1')), { error: { code: 100 } }, 'an ephemeral map has no versions')
    t.match(await entries('map:kept'), [{ key: 'k', data: 1 }])
  })

  t.test('bytes of the backend in a namespace with binary data', async (t) => {
    const client = await connectedWithToken(t, 'protobuf', edge.url)
    backend.on('map_publish', { result: { data: { text: 1 } } })
    t.match(await client.request(write('bytes:1', { data: '7' })), { publish: {} })
    const [entry] = await entries('bytes:1')
    t.equal(Buffer.from(String(entry?.b64data), 'base64').toString(), '{"text":1}')
  })

  t.test('a client that leaves before the answer changes nothing', async (t) => {
    await mapPublisher(edge, 'map:late').write('k', 1)
    for (const [event, command] of [
      ['map_publish', write('map:late', { data: '2' })],
      ['map_remove', removal('map:late')]
    ] as const) {
      const client = await connectedWithToken(t, 'json', edge.url)
      const held = backend.hold(event)
      client.send(command)
      const request = await held.next()
      client.ws.terminate()
      await eventually(() => request.isAborted, { label: 'the request is aborted' })
      held.release({})
    }
    t.match(await entries('map:late'), [{ key: 'k', data: 1, offset: 1 }])
  })

  t.test('calls are counted by event', async (t) => {
    const client = await connectedWithToken(t, 'json', edge.url)
    backend.on('map_remove', new RawAnswer(500))
    await client.request(removal('map:counted'))
    const metrics = await (await fetch(`${edge.url}/metrics`)).text()
    t.match(
      metrics,
      'centrifugo_proxy_duration_seconds_histogram_count{protocol="http",type="map_publish",name="default"}'
    )
    t.match(metrics, /centrifugo_proxy_errors\{protocol="http",type="map_remove",name="default"\} [1-9]/)
  })
})
