import { createHmac } from 'node:crypto'
import t from 'tap'
import { openClient } from '../../helper/raw-client.js'
import { officialClient, startRelay } from '../../helper/relay.js'
import { HMAC_SECRET } from '../../helper/relay-rules.js'

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs a token with exactly these claims; the project's signer uses whole seconds. */
const tokenOf = (claims: Readonly<Record<string, unknown>>, header: object = { alg: 'HS256', typ: 'JWT' }): string => {
  const text = `${part(header)}.${part({ sub: '42', ...claims })}`
  return `${text}.${createHmac('sha256', HMAC_SECRET).update(text).digest('base64url')}`
}

const nowSeconds = (): number => Date.now() / 1000
const wholeSeconds = (): number => Math.floor(nowSeconds())
/** More time than a busy machine needs between signing and using a token. */
const HOUR = 3600

t.test('times in connection tokens', async (t) => {
  const { url } = await startRelay(t)
  const connect = async (token: string) => {
    const client = await openClient(t, url)
    client.send({ id: 1, connect: { token } })
    return Promise.race([client.next(), client.closed])
  }
  const ttlOf = async (token: string): Promise<number> => {
    const reply = await connect(token)
    if (typeof reply === 'string') throw new Error(`closed with ${reply}`)
    return reply.connect?.ttl ?? 0
  }

  t.test('a connection token with a fractional exp is accepted, and its ttl is a whole number', async (t) => {
    const token = tokenOf({ exp: wholeSeconds() + HOUR + 0.25 })

    t.match(await connect(token), { connect: { expires: true, ttl: Number } })
    t.ok(Number.isInteger(await ttlOf(token)))
  })

  t.test('a connection token with a fractional expire_at is accepted', async (t) => {
    const reply = await connect(tokenOf({ exp: wholeSeconds() + HOUR, expire_at: wholeSeconds() + HOUR + 0.5 }))

    t.match(reply, { connect: { expires: true, ttl: Number } })
  })

  for (const typ of ['jwt', 'at+jwt', 'anything', '', null]) {
    t.test(`a connection token with the typ ${JSON.stringify(typ)} is accepted`, async (t) => {
      t.match(await connect(tokenOf({ exp: wholeSeconds() + HOUR }, { alg: 'HS256', typ })), { connect: {} })
    })
  }

  t.test('a connection token with a typ that is not text is closed with 3500', async (t) => {
    t.equal(await connect(tokenOf({ exp: wholeSeconds() + HOUR }, { alg: 'HS256', typ: 7 })), '3500 invalid token')
  })

  t.test('times in text are those of the number', async (t) => {
    const text = { exp: `${wholeSeconds() + HOUR}.5`, iat: String(wholeSeconds()), nbf: '0' }

    t.ok((await ttlOf(tokenOf(text))) > HOUR / 2)
    t.match(await connect(tokenOf({ exp: '1' })), { error: { code: 109 } })
    t.match(await connect(tokenOf({ ...text, nbf: `${wholeSeconds() + HOUR}` })), { error: { code: 109 } })
    for (const exp of ['', 'soon', '0x7fffffff', ` ${wholeSeconds() + HOUR}`, '1e999'])
      t.equal(await connect(tokenOf({ exp })), '3500 invalid token', exp)
  })

  t.test('times with null are absent', async (t) => {
    const { url } = await startRelay(t, { client: { token: { expiry_required: false } } })
    const client = await openClient(t, url)
    const reply = await client.request({ id: 1, connect: { token: tokenOf({ exp: null, nbf: null, iat: null }) } })

    t.match(reply, { connect: { client: /./, expires: undefined } })
    t.equal(await connect(tokenOf({ exp: null })), '3500 invalid token', 'an expiry is required')
  })

  t.test('a user with null is absent', async (t) => {
    const token = tokenOf({ exp: wholeSeconds() + HOUR, sub: null })
    const { url } = await startRelay(t, { client: { disallow_anonymous_connection_tokens: false } })
    const client = await openClient(t, url)

    t.match(await client.request({ id: 1, connect: { token } }), { connect: { client: /./ } })
    t.equal(await connect(token), '3507 permission denied')
  })

  for (const claim of ['iat', 'nbf']) {
    t.test(`a connection token whose ${claim} is less than 60 s ahead is accepted`, async (t) => {
      const token = tokenOf({ exp: wholeSeconds() + HOUR, [claim]: nowSeconds() + 55 })

      t.match(await connect(token), { connect: { client: /./ } })
    })

    t.test(`a connection token whose ${claim} is far ahead receives the retryable error 109`, async (t) => {
      const token = tokenOf({ exp: wholeSeconds() + 2 * HOUR, [claim]: nowSeconds() + HOUR })

      t.match(await connect(token), { id: 1, error: { code: 109 } })
    })

    t.test(`a connection token whose ${claim} is in milliseconds is closed with 3500`, async (t) => {
      t.equal(await connect(tokenOf({ exp: wholeSeconds() + HOUR, [claim]: Date.now() })), '3500 invalid token')
    })
  }

  for (const expireAt of [99_999_999_999, 1e15, 1e300, 1.7e308]) {
    t.test(`a ttl never exceeds uint32 where expire_at is ${expireAt}`, async (t) => {
      const ttl = await ttlOf(tokenOf({ exp: wholeSeconds() + HOUR, expire_at: expireAt }))

      t.ok(ttl <= 0xffffffff)
      t.ok(Number.isInteger(ttl))
    })
  }
})

t.test('the ttl of refresh and subscribe replies is a whole number within uint32', async (t) => {
  const { url, api } = await startRelay(t)
  const client = await openClient(t, url)
  const far = { exp: wholeSeconds() + HOUR + 0.5, expire_at: 9e15 }
  await client.request({ id: 1, connect: { token: tokenOf(far) } })

  t.match(await client.request({ id: 2, refresh: { token: tokenOf(far) } }), { refresh: { ttl: 0xffffffff } })
  const subscribing = { channel: 'floor:7', token: tokenOf({ ...far, channel: 'floor:7' }) }
  t.match(await client.request({ id: 3, subscribe: subscribing }), { subscribe: { ttl: 0xffffffff } })
  t.match(await client.request({ id: 4, sub_refresh: subscribing }), { sub_refresh: { ttl: 0xffffffff } })
  await api('refresh', { user: '42', expire_at: 9e15 })
  t.match(await client.next(), { push: { refresh: { ttl: 0xffffffff } } })
})

t.test("the official client requests a new token if the first issuer's clock is an hour ahead", async (t) => {
  const edge = await startRelay(t)
  const tokens = [
    tokenOf({ exp: wholeSeconds() + 2 * HOUR, iat: nowSeconds() + HOUR }),
    tokenOf({ exp: wholeSeconds() + HOUR, iat: wholeSeconds() })
  ]
  const client = officialClient(t, edge, 'websocket', { getToken: async () => tokens.shift() ?? '' })
  const connected = new Promise((resolve) => client.once('connected', resolve))
  client.connect()
  await connected

  t.equal(tokens.length, 0)
})
