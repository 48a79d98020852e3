import t, { type Test } from 'tap'
import { secretKey, signJwt } from '../../src/shared/jwt.js'
import { openClient } from '../helper/raw-client.js'
import { startRelay } from '../helper/relay.js'
import { API_KEY, configOf, HMAC_SECRET } from '../helper/relay-rules.js'

const PREVIOUS = 'the secret of relay tokens before that one'
const PREVIOUS_KEY = 'the key of the publish API before that one'
const FILE = { channel: { namespaces: [{ name: 'room' }] } }
const ROTATING = { REALTIME_HMAC_SECRET_PREVIOUS: PREVIOUS, REALTIME_API_KEY_PREVIOUS: PREVIOUS_KEY }

const signed = (secret: string, claims: object): string =>
  signJwt({ sub: '42', ...claims }, secretKey(secret), { lifetimeSeconds: 60 })

const connect = async (t: Test, url: string, secret: string): Promise<unknown> => {
  const client = await openClient(t, url)
  client.send({ id: 1, connect: { token: signed(secret, {}) } })
  return Promise.race([client.next(), client.closed])
}

t.test('a relay with previous secrets', async (t) => {
  const relay = await startRelay(t, FILE, ROTATING)

  t.test('connection tokens signed with the current or the previous secret are accepted', async (t) => {
    t.match(await connect(t, relay.url, HMAC_SECRET), { connect: { client: String } })
    t.match(await connect(t, relay.url, PREVIOUS), { connect: { client: String } })
    t.equal(await connect(t, relay.url, 'another secret'), '3500 invalid token')
  })

  t.test('subscription tokens signed with the current or the previous secret are accepted', async (t) => {
    const client = await openClient(t, relay.url)
    await client.request({ id: 1, connect: { token: signed(PREVIOUS, {}) } })
    const subscribe = (id: number, secret: string): Promise<unknown> => {
      const channel = `room:${id}`
      return client.request({ id, subscribe: { channel, token: signed(secret, { channel }) } })
    }
    t.match(await subscribe(2, HMAC_SECRET), { subscribe: {} })
    t.match(await subscribe(3, PREVIOUS), { subscribe: {} })
    t.match(await subscribe(4, 'another secret'), { error: { code: 103 } })
  })

  t.test('the publish API accepts the current and the previous key', async (t) => {
    const statusWith = async (key: string): Promise<number> =>
      (await relay.api('info', {}, { headers: { 'x-api-key': key } })).status
    t.same([await statusWith(API_KEY), await statusWith(PREVIOUS_KEY), await statusWith('other')], [200, 200, 401])
  })

  t.test('after a reload without the previous secrets they are rejected', async (t) => {
    relay.running.configure(configOf(FILE))
    t.equal(await connect(t, relay.url, PREVIOUS), '3500 invalid token')
    t.equal((await relay.api('info', {}, { headers: { 'x-api-key': PREVIOUS_KEY } })).status, 401)
  })
})

t.test('a separate subscription token key does not accept the previous connection secret', async (t) => {
  const client = { subscription_token: { enabled: true, hmac_secret_key: 'a key of their own' } }
  const { url } = await startRelay(t, { ...FILE, client }, ROTATING)
  const raw = await openClient(t, url)
  await raw.request({ id: 1, connect: { token: signed(PREVIOUS, {}) } })
  const subscribe = { channel: 'room:1', token: signed(PREVIOUS, { channel: 'room:1' }) }
  t.match(await raw.request({ id: 2, subscribe }), { error: { code: 103 } })
})

t.test('from hmac_previous_secret_key_valid_until on, the previous secret is rejected', async (t) => {
  const validUntil = Math.floor(Date.now() / 1000) + 60
  const token = { hmac_previous_secret_key: PREVIOUS, hmac_previous_secret_key_valid_until: validUntil }
  const relay = await startRelay(t, { ...FILE, client: { token } })
  const present = async (secret: string): Promise<unknown> => {
    const client = await openClient(t, relay.url)
    client.send({ id: 1, connect: { token: signJwt({ sub: '42' }, secretKey(secret), { lifetimeSeconds: 3600 }) } })
    return Promise.race([client.next(), client.closed])
  }
  t.match(await present(PREVIOUS), { connect: { client: String } })
  relay.step(61_000)
  t.equal(await present(PREVIOUS), '3500 invalid token')
  t.match(await present(HMAC_SECRET), { connect: { client: String } })
})

t.test('a reload without the previous secret keeps clients that are connected', async (t) => {
  const relay = await startRelay(t, FILE, ROTATING)
  const client = await openClient(t, relay.url)
  await client.request({ id: 1, connect: { token: signed(PREVIOUS, {}) } })
  relay.running.configure(configOf(FILE))

  t.match(await client.request({ id: 2, refresh: { token: signed(HMAC_SECRET, {}) } }), { refresh: {} })
  client.send({ id: 3, refresh: { token: signed(PREVIOUS, {}) } })
  t.equal(await client.closed, '3500 invalid token')
})
