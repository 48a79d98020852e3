import { Centrifuge, UnauthorizedError } from 'centrifuge'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { eventually } from '../helper/eventually.js'
import { openClient } from '../helper/raw-client.js'
import { startRedis } from '../helper/redis.js'
import { startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'
import { startWorkers } from '../helper/relay-workers.js'

const FILE = {
  client: { user_tokens_invalidate: { enabled: true } },
  channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] }
}

const tokenFrom = (secondsAgo: number, claims: object): string =>
  relayToken({ ...claims }, { nowMs: Date.now() - secondsAgo * 1000 })

/** `connected`, the code of an error reply, or why it was closed. */
const connect = async (t: Test, url: string, token: string) => {
  const client = await openClient(t, url)
  const reply = client
    .request({ id: 1, connect: { token } })
    .then(({ error }: { error?: { code: number } }) => error?.code ?? 'connected')
  return { client, outcome: await Promise.race([reply, client.closed]) }
}

const INVALIDATED = 109

t.test('invalidate_user_tokens', async (t) => {
  t.test('the connections of the user are closed and older tokens are rejected', async (t) => {
    const relay = await startRelay(t, FILE)
    const { client, outcome } = await connect(t, relay.url, tokenFrom(5, { sub: 'ada' }))
    t.equal(outcome, 'connected')
    const other = await connect(t, relay.url, tokenFrom(5, { sub: 'bob' }))
    const newest = tokenFrom(0, { sub: 'ada', channels: ['chat:a'] })
    t.same((await relay.api('invalidate_user_tokens', { user: 'ada' })).body, '{"result":{}}')
    t.match(await client.closed, /^3005 /)

    t.equal((await connect(t, relay.url, tokenFrom(5, { sub: 'ada' }))).outcome, INVALIDATED)
    t.equal((await connect(t, relay.url, newest)).outcome, INVALIDATED)
    t.equal(other.client.ws.readyState, WebSocket.OPEN, 'other users stay connected')
    await relay.api('invalidate_user_tokens', { user: 'nobody' })
  })

  t.test('tokens that were issued later are accepted', async (t) => {
    const relay = await startRelay(t, FILE)
    const issuedBefore = Math.floor(Date.now() / 1000) - 60
    await relay.api('invalidate_user_tokens', { user: 'ada', issued_before: issuedBefore })
    t.equal((await connect(t, relay.url, tokenFrom(120, { sub: 'ada' }))).outcome, INVALIDATED)
    t.equal((await connect(t, relay.url, tokenFrom(30, { sub: 'ada' }))).outcome, 'connected')
  })

  t.test('a refresh with an older token closes the connection', async (t) => {
    const relay = await startRelay(t, FILE)
    const { client } = await connect(t, relay.url, tokenFrom(10, { sub: 'ada' }))
    const issuedBefore = Math.floor(Date.now() / 1000) - 60
    await relay.api('invalidate_user_tokens', { user: 'ada', issued_before: issuedBefore })
    await client.closed
    const again = await connect(t, relay.url, tokenFrom(10, { sub: 'ada' }))
    again.client.ws.send(JSON.stringify({ id: 2, refresh: { token: tokenFrom(120, { sub: 'ada' }) } }))
    t.match(await again.client.closed, /^3005 /)
  })

  t.test('with a channel only its subscription tokens are rejected', async (t) => {
    const relay = await startRelay(t, FILE)
    const subscribe = async (channel: string) => {
      const { client } = await connect(t, relay.url, tokenFrom(5, { sub: 'ada' }))
      const token = tokenFrom(5, { sub: 'ada', channel })
      const reply: { error?: { code: number } } = await client.request({ id: 2, subscribe: { channel, token } })
      return reply.error?.code ?? 'subscribed'
    }
    t.equal(await subscribe('chat:a'), 'subscribed')
    const { body } = await relay.api('invalidate_user_tokens', { user: 'ada', channel: 'chat:a' })
    t.same(body, '{"result":{}}')
    t.equal(await subscribe('chat:a'), INVALIDATED)
    t.equal(await subscribe('chat:b'), 'subscribed')
  })

  t.test('the official client requests a new token and connects with it', async (t) => {
    const relay = await startRelay(t, FILE)
    let isSignedIn = true
    let issued = 0
    const centrifuge = new Centrifuge(`${relay.url.replace('http', 'ws')}/connection/websocket`, {
      websocket: WebSocket,
      minReconnectDelay: 1,
      token: tokenFrom(5, { sub: 'ada' }),
      getToken: async () => {
        issued += 1
        if (!isSignedIn) throw new UnauthorizedError('')
        return tokenFrom(0, { sub: 'ada' })
      }
    })
    t.teardown(() => centrifuge.disconnect())
    centrifuge.connect()
    await centrifuge.ready()
    await relay.api('invalidate_user_tokens', { user: 'ada', issued_before: Math.floor(Date.now() / 1000) - 2 })
    await eventually(() => issued > 0 && centrifuge.state === 'connected')
    isSignedIn = false
    await relay.api('invalidate_user_tokens', { user: 'ada' })
    await eventually(() => centrifuge.state === 'disconnected')
  })

  for (const [name, request] of Object.entries({
    'no user': {},
    'an empty user': { user: '' },
    'a time in milliseconds': { user: 'ada', issued_before: Date.now() }
  })) {
    t.test(`invalidate_user_tokens rejects ${name}`, async (t) => {
      const relay = await startRelay(t, FILE)
      t.match(JSON.parse((await relay.api('invalidate_user_tokens', request)).body), { error: { code: 107 } })
    })
  }

  for (const [name, request] of Object.entries({
    'a number as the user': { user: 7 },
    'a negative time': { user: 'ada', issued_before: -5 },
    'a time that is text': { user: 'ada', issued_before: 'now' }
  })) {
    t.test(`invalidate_user_tokens rejects ${name} with 400`, async (t) => {
      const relay = await startRelay(t, FILE)
      t.equal((await relay.api('invalidate_user_tokens', request)).status, 400)
    })
  }

  t.test('invalidate_user_tokens is not available unless it is enabled', async (t) => {
    const relay = await startRelay(t)
    t.match(JSON.parse((await relay.api('invalidate_user_tokens', { user: 'ada' })).body), { error: { code: 108 } })
  })

  t.test('the channel with the invalidated tokens cannot be used', async (t) => {
    const relay = await startRelay(t, FILE)
    const channel = '\u0000token-invalidations'
    for (const method of ['publish', 'history', 'history_remove', 'presence'])
      t.match(JSON.parse((await relay.api(method, { channel, data: {} })).body), { error: { code: 102 } }, method)
  })
})

t.test('invalidated tokens of several relays', async (t) => {
  t.test('two relays with one Redis reject the tokens, also after a restart', async (t) => {
    const { url } = await startRedis(t)
    const env = { RELAY_ENGINE: 'redis', REDIS_URL: url }
    const token = tokenFrom(5, { sub: 'ada' })
    const [one, two] = [await startRelay(t, FILE, env), await startRelay(t, FILE, env)]
    const { client } = await connect(t, two.url, token)
    t.same((await one.api('invalidate_user_tokens', { user: 'ada' })).body, '{"result":{}}')
    t.match(await client.closed, /^3005 /)
    t.equal((await connect(t, two.url, token)).outcome, INVALIDATED)

    const three = await startRelay(t, FILE, env)
    await eventually(async () => (await connect(t, three.url, tokenFrom(5, { sub: 'bob' }))).outcome === 'connected')
    t.equal((await connect(t, three.url, token)).outcome, INVALIDATED)
  })

  t.test('a worker that replaces another rejects the tokens', async (t) => {
    const token = tokenFrom(5, { sub: 'ada' })
    const relay = await startWorkers(t, 2, FILE)
    await relay.api('invalidate_user_tokens', { user: 'ada' })
    const before = relay.workers()
    for (const pid of before) process.kill(pid, 'SIGKILL')
    await eventually(() => relay.program.stdout.split('worker replaced').length > before.length)
    for (let attempt = 0; attempt < 8; attempt++)
      t.equal((await connect(t, relay.url, token)).outcome, INVALIDATED, `connection ${attempt}`)
    t.equal((await connect(t, relay.url, tokenFrom(5, { sub: 'bob' }))).outcome, 'connected')
  })
})
