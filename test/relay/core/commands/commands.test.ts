import { createHmac } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { EngineError } from '../../../../src/relay/core/engine.js'
import { coreRelay, FakeSink, type Message, publicationAt, withNamespace } from '../../../helper/relay-core.js'
import { HMAC_SECRET } from '../../../helper/relay-rules.js'

/** A token without an expiry, which the project's own signer does not create. */
const endlessToken = (claims: Record<string, unknown>): string => {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`
  return `${signed}.${createHmac('sha256', HMAC_SECRET).update(signed).digest('base64url')}`
}

t.test('connect', async (t) => {
  t.test('the connect reply contains client id, expiry and ping interval', async (t) => {
    const { client, token } = coreRelay()

    t.same(await client().send({ id: 7, connect: { token: token({ sub: '42' }), name: 'js' } }), [
      { id: 7, connect: { client: 'id-2', version: 'test', expires: true, ttl: 3600, ping: 25, pong: true } }
    ])
  })

  t.test('an expired token is answered with an error, and everything after it is ignored', async (t) => {
    const { client, token, clock } = coreRelay()
    const old = token({ sub: '42' }, 10)
    clock.nowMs += 10_000
    const connecting = client()

    t.same(await connecting.send({ id: 1, connect: { token: old } }, { id: 2, subscribe: { channel: 'floor:7' } }), [
      { id: 1, error: { code: 109, message: 'token expired' } }
    ])
    t.same(await connecting.send({ id: 3, connect: { token: token({ sub: '42' }) } }), [])
    t.equal(connecting.closed, null)
  })

  t.test('a token that is not valid yet is treated as expired', async (t) => {
    const { client, token, clock } = coreRelay()
    const early = token({ sub: '42', nbf: Math.floor(clock.nowMs / 1000) + 120 })

    t.match(await client().send({ id: 1, connect: { token: early } }), [{ id: 1, error: { code: 109 } }])
  })

  const rejected: [title: string, claims: Record<string, unknown>, closed: string][] = [
    ['a user that is no text', { sub: 42 }, '3500 invalid token'],
    ['no user', {}, '3507 permission denied'],
    ['an empty user', { sub: '' }, '3507 permission denied'],
    ['the mark of a subscription token', { sub: '42', channel: 'floor:7' }, '3500 invalid token'],
    ['channels that are no list', { sub: '42', channels: 'floor:7' }, '3500 invalid token'],
    ['channels that are no texts', { sub: '42', channels: [7] }, '3500 invalid token'],
    ['subs that are no objects', { sub: '42', subs: { 'floor:7': true } }, '3500 invalid token'],
    ['an end that is no number', { sub: '42', expire_at: 'never' }, '3500 invalid token'],
    ['info that is no JSON', { sub: '42', b64info: 'e30x' }, '3500 invalid token'],
    ['info that is no text', { sub: '42', b64info: 7 }, '3500 invalid token']
  ]
  for (const [title, claims, closed] of rejected) {
    t.test(`a token with ${title} closes the connection`, async (t) => {
      const { client, token } = coreRelay()
      const connecting = client()

      t.same(await connecting.send({ id: 1, connect: { token: token(claims) } }), [])
      t.equal(connecting.closed, closed)
    })
  }

  t.test('a forged or missing token closes the connection', async (t) => {
    const { client } = coreRelay()
    const forger = client()
    await forger.send({ id: 1, connect: { token: 'a.b.c' } })
    const withoutToken = client()
    await withoutToken.send({ id: 1, connect: {} })

    t.equal(forger.closed, '3500 invalid token')
    t.equal(withoutToken.closed, '3501 bad request')
  })

  t.test('allow_anonymous_connect_without_token admits a client without a token', async (t) => {
    const { client } = coreRelay({ client: { allow_anonymous_connect_without_token: true } })

    t.match(await client().send({ id: 1, connect: {} }), [{ id: 1, connect: { client: /./ } }])
  })

  t.test('connecting subscribes the client to the channels of its token', async (t) => {
    const { client, token, publish } = coreRelay(
      withNamespace({ history_size: 10, history_ttl: '60s', force_recovery: true })
    )
    const connecting = client()
    publish('chat:1', 1)

    t.match(
      await connecting.send({ id: 1, connect: { token: token({ sub: '42', channels: ['chat:1', 'chat:2'] }) } }),
      [
        {
          id: 1,
          connect: {
            subs: {
              'chat:1': { recoverable: true, positioned: true, epoch: 'epoch1', offset: 1 },
              'chat:2': { recoverable: true, positioned: true, epoch: 'epoch2' }
            }
          }
        }
      ]
    )
    publish('chat:2', { hi: 1 })
    t.match(connecting.received(), [{ push: { channel: 'chat:2', pub: { data: { hi: 1 }, offset: 1 } } }])
  })

  t.test('connecting recovers the channels of the token', async (t) => {
    const { client, token, publish } = coreRelay(
      withNamespace({ history_size: 10, history_ttl: '60s', force_recovery: true })
    )
    for (const data of [1, 2, 3]) publish('chat:1', data)
    const subs = { 'chat:1': { recover: true, epoch: 'epoch1', offset: 1 } }

    t.match(await client().send({ id: 1, connect: { token: token({ sub: '42', channels: ['chat:1'] }), subs } }), [
      { connect: { subs: { 'chat:1': { recovered: true, offset: 1, publications: [{ data: 2 }, { data: 3 }] } } } }
    ])
  })

  t.test(
    'connecting fails with 102 for an unknown namespace in the token, and with 3505 for too many channels',
    async (t) => {
      const { client, token } = coreRelay({ client: { channel_limit: 2 } })
      const many = client()
      await many.send({ id: 1, connect: { token: token({ sub: '42', channels: ['a', 'b', 'c'] }) } })

      t.match(await client().send({ id: 1, connect: { token: token({ sub: '42', channels: ['nope:1'] }) } }), [
        { id: 1, error: { code: 102, message: 'unknown channel' } }
      ])
      t.equal(many.closed, '3505 channel limit')
    }
  )

  t.test('the third connection of a user is closed if user_connection_limit is 2', async (t) => {
    const { connected, relay } = coreRelay({ client: { user_connection_limit: 2 } })
    const [first, second, third] = [await connected('42'), await connected('42'), await connected('42')]

    t.equal(first.closed, null)
    t.equal(second.closed, null)
    t.equal(third.closed, '3504 connection limit')
    first.client.connectionLost()
    t.equal((await connected('42')).closed, null, 'a disconnect frees a connection')
    t.equal(relay.stats().users, 1)
  })

  t.test('a client of an emulated transport receives a session', async (t) => {
    const { client, token, relay } = coreRelay()
    const [reply] = await client(new FakeSink(true)).send({ id: 1, connect: { token: token({ sub: '42' }) } })

    t.match(reply, { connect: { session: /./, node: relay.node } })
  })
})

t.test('of several server-side subscriptions that fail, the first one decides', async (t) => {
  const history = {
    read: async () => ({
      epoch: 'e',
      offset: 1,
      publications: [{ ...publicationAt(1), data: Buffer.from([0xff]) }],
      oldest: 1
    }),
    remove: async () => undefined
  }
  const namespaces = [
    { name: 'chat', history_size: 10, history_ttl: '60s', force_recovery: true },
    { name: 'bytes', publication_data_format: 'binary' }
  ]
  const { client, token } = coreRelay({ channel: { namespaces } }, { history })
  const connect = async (...channels: readonly string[]) => {
    const connecting = client()
    const subs = { 'chat:1': { recover: true, epoch: 'e', offset: 0 } }
    const [reply] = await connecting.send({ id: 1, connect: { token: token({ sub: '42', channels }), subs } })
    return connecting.closed ?? reply?.error?.code
  }

  t.equal(await connect('bytes:1', 'chat:1'), 108)
  t.equal(await connect('chat:1', 'bytes:1'), '3506 inappropriate protocol')
})

t.test('claims of a connection', async (t) => {
  t.test('user and expiry claims are optional if configured, and anonymous users are still rejected', async (t) => {
    const lax = { client: { token: { expiry_required: false } } }
    const { client, clock } = coreRelay(lax)
    const endless = client()
    const [reply] = await endless.send({ id: 1, connect: { token: endlessToken({ sub: '42' }) } })
    const nameless = client()
    await nameless.send({ id: 1, connect: { token: endlessToken({}) } })
    const early = await client().send({
      id: 1,
      connect: { token: endlessToken({ sub: '42', nbf: clock.nowMs / 1000 + 61 }) }
    })

    t.match(reply, { connect: { client: /./, expires: undefined } })
    const strict = coreRelay().client()
    await strict.send({ id: 1, connect: { token: endlessToken({ sub: '42' }) } })

    t.equal(strict.closed, '3500 invalid token')
    t.equal(nameless.closed, '3507 permission denied')
    t.match(early, [{ error: { code: 109 } }])
  })

  t.test('a token of the second of its invalidation is rejected, also with a time in fractions', async (t) => {
    const { client, clock, relay } = coreRelay({
      client: { token: { expiry_required: false }, user_tokens_invalidate: { enabled: true } }
    })
    await setImmediate()
    const issuedBefore = Math.floor(clock.nowMs / 1000) - 10
    await relay.invalidateTokens('42', '', issuedBefore)
    const connect = async (iat: number) => {
      const [reply] = await client().send({ id: 1, connect: { token: endlessToken({ sub: '42', iat }) } })
      return reply?.error?.code ?? 'connected'
    }

    t.equal(await connect(issuedBefore + 0.9), 109)
    t.equal(await connect(issuedBefore + 1), 'connected')
  })

  t.test('audience and issuer must match if configured', async (t) => {
    const { client, token } = coreRelay({ client: { token: { audience: 'relay', issuer: 'backend' } } })
    const tried = async (claims: Record<string, unknown>) => {
      const connecting = client()
      await connecting.send({ id: 1, connect: { token: token({ sub: '42', ...claims }) } })
      return connecting.closed
    }

    t.equal(await tried({ aud: 'relay', iss: 'backend' }), null)
    t.equal(await tried({ aud: ['other', 'relay'], iss: 'backend' }), null)
    t.equal(await tried({ aud: 'other', iss: 'backend' }), '3500 invalid token')
    t.equal(await tried({ aud: 'relay' }), '3500 invalid token')
    t.equal(await tried({}), '3500 invalid token')
  })

  t.test('the subs claim sets info and data of server-side subscriptions', async (t) => {
    const { client, token } = coreRelay(withNamespace({ presence: true }))
    const subs = {
      'chat:1': { info: { role: 'r' }, b64data: 'eyJhIjoxfQ==', override: { presence: { value: false } } }
    }
    const [reply] = await client().send({ id: 1, connect: { token: token({ sub: '42', subs, channels: ['chat:2'] }) } })

    t.same(reply?.connect?.subs, { 'chat:1': { data: { a: 1 } } })
  })

  t.test('user_subscribe_to_personal subscribes a user to the personal channel', async (t) => {
    const { client, token, publish } = coreRelay({
      client: { subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'user' } },
      channel: { namespaces: [{ name: 'user' }] }
    })
    const user = client()
    const [reply] = await user.send({ id: 1, connect: { token: token({ sub: '42' }) } })
    publish('user:#42', 'for you')

    t.match(reply, { connect: { subs: { 'user:#42': {} } } })
    t.match(user.received(), [{ push: { channel: 'user:#42', pub: { data: 'for you' } } }])
  })

  t.test('include_connection_time adds the time to the connect reply', async (t) => {
    const { client, token, clock } = coreRelay({ client: { connect_include_server_time: true } })

    t.match(await client().send({ id: 1, connect: { token: token({ sub: '42' }) } }), [
      { connect: { time: clock.nowMs } }
    ])
  })
})

t.test('commands', async (t) => {
  const misuses: [name: string, message: string | Message][] = [
    ['a command before connect', { id: 1, subscribe: { channel: 'floor:7' } }],
    ['a pong before connect', '{}'],
    ['garbage', 'hello'],
    ['an empty message', ''],
    ['blank lines', '\n\n'],
    ['a list', '[]'],
    ['a number', '1'],
    ['null', 'null'],
    ['connect without an id', { connect: {} }],
    ['connect that is a text', { id: 1, connect: 'x' }],
    ['connect with a token that is a number', { id: 1, connect: { token: 1 } }],
    ['an unknown command', { id: 1, dance: {} }]
  ]
  for (const [name, message] of misuses) {
    t.test(`${name} closes a new connection`, async (t) => {
      const { client } = coreRelay()
      const misused = client()

      t.same(await misused.send(message), [])
      t.equal(misused.closed, '3501 bad request')
    })
  }

  const live: [name: string, message: string | Message, closed: string][] = [
    ['a second connect', { id: 2, connect: {} }, '3501 bad request'],
    ['an unsolicited pong', '{}', '3501 bad request'],
    ['a command without an id', { subscribe: { channel: 'floor:7' } }, '3501 bad request'],
    ...(['3', -1, 1.5, 4294967296] as const).map((id): [string, Message, string] => [
      `a command with the id ${JSON.stringify(id)}`,
      { id, subscribe: { channel: 'floor:7' } },
      '3501 bad request'
    ]),
    ['a ping of its own', { id: 2, ping: {} }, '3501 bad request'],
    ['subscribe without a channel', { id: 2, subscribe: {} }, '3501 bad request'],
    ['subscribe with an unknown delta', { id: 2, subscribe: { channel: 'floor:7', delta: 'xor' } }, '3501 bad request'],
    [
      'subscribe with an offset that is a text',
      { id: 2, subscribe: { channel: 'floor:7', offset: '1' } },
      '3501 bad request'
    ],
    ['unsubscribe without a channel', { id: 2, unsubscribe: {} }, '3501 bad request'],
    ['publish without a channel', { id: 2, publish: { data: {} } }, '3501 bad request'],
    ['presence without a channel', { id: 2, presence: {} }, '3501 bad request'],
    ['history with a malformed position', { id: 2, history: { channel: 'floor:7', since: 7 } }, '3501 bad request'],
    ['refresh without a token', { id: 2, refresh: {} }, '3501 bad request'],
    ['send, which the relay does not support', { send: { data: {} } }, '3508 not available']
  ]
  for (const [name, message, closed] of live) {
    t.test(`${name} closes a live connection`, async (t) => {
      const misused = await coreRelay().connected('42')

      await misused.send(message)
      t.equal(misused.closed, closed)
    })
  }

  t.test('the commands of one frame are answered in one frame, in order', async (t) => {
    const { client, token } = coreRelay()
    const { sink, send } = client()
    await send(
      { id: 1, connect: { token: token({ sub: '42' }) } },
      { id: 2, subscribe: { channel: 'floor:7', flag: 1 } },
      { id: 3, rpc: { method: 'x' } }
    )

    t.equal(sink.writes.length, 1)
    t.same(
      sink.writes[0]?.split('\n').map((line) => JSON.parse(line).id),
      [1, 2, 3]
    )
  })

  t.test('a frame may end with a line break', async (t) => {
    const client = await coreRelay().connected('42')

    t.match(await client.send('{"id":2,"unsubscribe":{"channel":"floor:7"}}\n'), [{ id: 2, unsubscribe: {} }])
    t.equal(client.closed, null)
  })

  t.test('a command object with several methods runs the first one', async (t) => {
    const client = await coreRelay().connected('42')

    t.match(await client.send({ id: 2, rpc: {}, unsubscribe: { channel: 'floor:7' } }), [{ id: 2, unsubscribe: {} }])
  })

  t.test('commands_per_second limits the commands of a client', async (t) => {
    const { connected, clock } = coreRelay({ client: { commands_per_second: 3 } })
    const patient = await connected('42')
    for (const id of [2, 3]) await patient.send({ id, unsubscribe: { channel: 'x' } })
    clock.nowMs += 1000
    for (const id of [4, 5, 6]) await patient.send({ id, unsubscribe: { channel: 'x' } })
    t.equal(patient.closed, null)

    t.same(await patient.send({ id: 7, unsubscribe: { channel: 'x' } }), [])
    t.equal(patient.closed, '3013 too many requests')
  })

  t.test('commands are unlimited by default', async (t) => {
    const client = await coreRelay().connected('42')
    for (let id = 2; id <= 5000; id++) client.client.handleFrame(JSON.stringify({ id, unsubscribe: { channel: 'x' } }))

    t.equal(client.closed, null)
    t.equal(client.received().length, 4999)
  })

  t.test('commands of one frame that take long yield to other clients', async (t) => {
    const clock = { ms: 0 }
    const { connected, endTurn } = coreRelay(undefined, { monotonicMs: () => clock.ms++ })
    const [busy, other] = [await connected('1'), await connected('2')]
    clock.ms += 1000
    const commands = Array.from({ length: 50 }, (_, index) => ({ id: index + 2, unsubscribe: { channel: 'x' } }))
    busy.client.handleFrame(commands.map((each) => JSON.stringify(each)).join('\n'))
    const atFirst = busy.sink.writes.join('\n').split('\n').length - 1
    t.ok(atFirst < 50, `${atFirst} were run at once`)
    clock.ms += 1000
    other.client.handleFrame('{"id":2,"unsubscribe":{"channel":"x"}}')
    t.match(JSON.parse(other.sink.writes.at(-1) ?? ''), { id: 2 }, 'the other client is answered meanwhile')
    for (let turn = 0; turn < 200; turn++) endTurn()

    t.same(
      busy.received().map(({ id }) => id),
      commands.map(({ id }) => id),
      'all are answered, in their order'
    )
  })

  t.test('commands in separate frames that take long yield to other clients', async (t) => {
    const clock = { ms: 0 }
    const { connected } = coreRelay(undefined, { monotonicMs: () => (clock.ms += 0.5) })
    const busy = await connected('1')
    for (let id = 2; id <= 100; id++) busy.client.handleFrame(JSON.stringify({ id, unsubscribe: { channel: 'x' } }))

    t.ok(busy.sink.writes.length < 100, `${busy.sink.writes.length} were run at once`)
    t.equal(busy.received().length > 1, true)
  })

  t.test('unsupported commands are answered with 108', async (t) => {
    t.match(await (await coreRelay().connected('42')).send({ id: 2, rpc: { method: 'x', data: {} } }), [
      { id: 2, error: { code: 108, message: 'not available' } }
    ])
  })

  t.test('commands are answered with 100 if the engine fails, and the connection stays open', async (t) => {
    const down = (): never => {
      throw new EngineError('down')
    }
    const { connected, relay } = coreRelay(undefined, { history: { read: down, remove: down } })
    const client = await connected('42')

    t.same(await client.send({ id: 2, subscribe: { channel: 'floor:7' } }), [
      { id: 2, error: { code: 100, message: 'internal server error', temporary: true } }
    ])
    t.equal(client.closed, null)
    t.equal(relay.stats().subscriptions, 0, 'no subscription is left')
  })

  const failures: [title: string, read: () => never | Promise<never>][] = [
    [
      'at once',
      () => {
        throw new EngineError('down')
      }
    ],
    ['later', async () => Promise.reject(new EngineError('down'))]
  ]
  for (const [title, read] of failures) {
    t.test(`commands in the frame of a connect are dropped if the engine fails ${title}`, async (t) => {
      const { client, token, relay } = coreRelay(undefined, { history: { read, remove: async () => undefined } })
      const connecting = client()
      await connecting.send(
        { id: 1, connect: { token: token({ sub: '42', channels: ['floor:1', 'floor:2'] }) } },
        { id: 2, subscribe: { channel: 'floor:7' } },
        { id: 3, unsubscribe: { channel: 'floor:7' } }
      )
      await setImmediate()

      t.match(
        connecting.sink.writes.map((text) => JSON.parse(text)),
        [{ id: 1, error: { code: 100, temporary: true } }]
      )
      t.equal(connecting.sink.writes.length, 1)
      t.equal(relay.stats().subscriptions, 0)
      t.same(await connecting.send({ id: 4, subscribe: { channel: 'floor:7' } }), [])
      t.equal(connecting.closed, null, 'the client may connect again, on another connection')
    })
  }
})
