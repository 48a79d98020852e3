import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { urlOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { redisUrl, startRedis } from '../../helper/redis.js'
import {
  APP,
  APP_HOST,
  browserOf,
  CLIENT_ID,
  CLIENT_SECRET,
  signIn,
  startOidcGateway,
  startProvider
} from './fixture.js'
import { signed, signedWithText, startScriptedProvider, type TokenRecipe, unsigned } from './scripted-provider.js'

const PATH = '/auth/oidc/backchannel-logout'
const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

t.test('back-channel logout', async (t) => {
  t.test('a logout at the provider ends the sessions at both gateways', async (t) => {
    // The provider must know our address before we listen there.
    const logoutEndpoint = createServer()
    await once(logoutEndpoint.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => logoutEndpoint.close())
    const backchannel_logout_uri = `${urlOf(logoutEndpoint)}${PATH}`
    const provider = await startProvider(t, {
      client: { backchannel_logout_uri, backchannel_logout_session_required: true }
    })
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { REDIS_URL: await redisUrl(t) } })
    const notified = new Promise<number>((resolve) => {
      logoutEndpoint.on('request', async (request, response) => {
        const reply = await send(gateway.url, request.url ?? '', {
          method: 'POST',
          headers: FORM,
          body: await buffer(request)
        })
        response.writeHead(reply.status).end(reply.body)
        resolve(reply.status)
      })
    })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')

    // At the provider's own page, not through us.
    const page = await browser.visit(`${provider.url}/session/end`)
    const [, action = ''] = /action="([^"]+)"/.exec(page.body) ?? []
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(page.body)?.[1] ?? ''
    await browser.submit(action, { xsrf, logout: 'yes' })
    t.equal(await notified, 200)

    await browser.request(`${APP}/api/zones`)
    t.equal(gateway.backend.requests.at(-1)?.headers.authorization, undefined)
    t.same(browser.names(APP_HOST), [], 'the next request of the browser clears the cookies')
  })

  t.test('the back-channel logout route does not exist without Redis', async (t) => {
    const provider = await startScriptedProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    t.equal((await gateway.send(PATH, { method: 'POST', headers: FORM, body: 'logout_token=x' })).code, 'NOT_FOUND')
  })
})

t.test('logout token', async (t) => {
  const now = (): number => Math.floor(Date.now() / 1000)
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const provider = await startScriptedProvider(t)
  const gateway = await startOidcGateway(t, { issuer: provider.url, env: { REDIS_URL: await redisUrl(t) } })

  const recipe = (claims: object = {}): TokenRecipe => ({
    header: { alg: 'RS256', kid: 'k1', typ: 'logout+jwt' },
    claims: {
      iss: provider.url,
      aud: CLIENT_ID,
      iat: now(),
      exp: now() + 120,
      jti: randomUUID(),
      sub: 'ada',
      events: { [EVENT]: {} },
      ...claims
    },
    key: provider.key
  })
  const post = (body: string) => gateway.send(PATH, { method: 'POST', headers: FORM, body })
  const postToken = async (token: string | Promise<string>) =>
    post(new URLSearchParams({ logout_token: await token }).toString())
  const signedInAs = async () => {
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    return browser
  }

  const INVALID_TOKENS: readonly (readonly [title: string, token: () => string | Promise<string>])[] = [
    ['without a signature', () => unsigned(recipe())],
    ['signed with the client secret', () => signedWithText(recipe(), CLIENT_SECRET)],
    ['signed with another key', () => signed({ ...recipe(), key: other })],
    ['of another issuer', () => signed(recipe({ iss: 'https://evil.test' }))],
    ['for another client', () => signed(recipe({ aud: 'another' }))],
    ['from an hour ago', () => signed(recipe({ iat: now() - 3600 }))],
    ['that has expired', () => signed(recipe({ exp: now() - 120 }))],
    ['without a time', () => signed(recipe({ iat: undefined }))],
    ['without the event', () => signed(recipe({ events: {} }))],
    ['with an event that is no object', () => signed(recipe({ events: { [EVENT]: true } }))],
    ['that is an ID token', () => signed(recipe({ events: undefined, nonce: 'n' }))],
    ['with a nonce', () => signed(recipe({ nonce: 'n' }))],
    ['without a name of its own', () => signed(recipe({ jti: undefined }))],
    ['with an event list that is empty', () => signed(recipe({ events: null }))],
    ['from the future', () => signed(recipe({ iat: now() + 3600 }))],
    ['without a subject', () => signed(recipe({ sub: undefined }))],
    ['that is none', () => 'nonsense']
  ]
  const browser = await signedInAs()
  for (const [title, token] of INVALID_TOKENS) {
    t.test(`a logout token is rejected ${title}`, async (t) => {
      const response = await postToken(token())
      t.equal(response.status, 400)
      t.equal(response.code, 'VALIDATION_FAILED')
      await browser.request(`${APP}/api/zones`)
      t.ok(browser.cookie(APP_HOST, 'auth_token'), 'no session has ended')
    })
  }

  t.test(
    'a logout token is answered with 500 while the keys cannot be fetched, so that the provider repeats it',
    async (t) => {
      const away = await startScriptedProvider(t)
      const { listener } = away
      away.listener = (request, response) =>
        request.url === '/keys' ? response.writeHead(500).end() : listener(request, response)
      const other = await startOidcGateway(t, { issuer: away.url, env: { REDIS_URL: await redisUrl(t) } })
      const token = await signed({ ...recipe({ iss: away.url }), key: away.key })
      const body = new URLSearchParams({ logout_token: token }).toString()
      t.equal((await other.send(PATH, { method: 'POST', headers: FORM, body })).code, 'INTERNAL')
    }
  )

  t.test('a back-channel logout without a token or with two is rejected', async (t) => {
    const two = new URLSearchParams([
      ['logout_token', await signed(recipe())],
      ['logout_token', 'b']
    ])
    for (const body of ['', 'logout_token', 'token=x', two.toString()]) t.equal((await post(body)).status, 400, body)
    const json = { 'content-type': 'application/json' }
    t.equal((await gateway.send(PATH, { method: 'POST', headers: json, body: '{}' })).code, 'UNSUPPORTED_MEDIA_TYPE')
    t.equal((await post(`logout_token=${'a'.repeat(20_000)}`)).code, 'BODY_TOO_LARGE')
  })

  t.test('a logout token with a subject ends the sessions started before it', async (t) => {
    const [phone, laptop] = [await signedInAs(), await signedInAs()]
    const response = await postToken(signed(recipe()))
    t.equal(response.status, 200)
    t.equal(response.headers['cache-control'], 'no-store')
    for (const browser of [phone, laptop]) {
      await browser.request(`${APP}/api/zones`)
      t.same(browser.names(APP_HOST), [])
    }
    const again = await signedInAs()
    await again.request(`${APP}/api/zones`)
    t.ok(again.cookie(APP_HOST, 'auth_token'), 'the user can sign in again')
  })

  t.test('a logout token with a sid ends only that session', async (t) => {
    provider.idToken = (token) => signed({ ...token, claims: { ...token.claims, sid: 'laptop' } })
    const laptop = await signedInAs()
    provider.idToken = (token) => signed({ ...token, claims: { ...token.claims, sid: 'phone' } })
    const phone = await signedInAs()
    await postToken(signed(recipe({ sid: 'laptop' })))
    for (const browser of [phone, laptop]) await browser.request(`${APP}/api/zones`)
    t.equal(laptop.cookie(APP_HOST, 'auth_token'), undefined)
    t.ok(phone.cookie(APP_HOST, 'auth_token'))
  })

  t.test('a logout token with a sid also ends sessions of the subject without a sid', async (t) => {
    provider.idToken = signed
    const unnamed = await signedInAs()
    provider.idToken = (token) => signed({ ...token, claims: { ...token.claims, sid: 'other' } })
    const other = await signedInAs()
    await postToken(signed(recipe({ sid: 'laptop', sub: 'ada' })))
    for (const browser of [unnamed, other]) await browser.request(`${APP}/api/zones`)
    t.equal(unnamed.cookie(APP_HOST, 'auth_token'), undefined, 'a session without an id may be the one that ended')
    t.ok(other.cookie(APP_HOST, 'auth_token'), 'this one is not')
  })

  t.test('a logout token is accepted once, so a replay does not end a later session', async (t) => {
    const token = await signed(recipe())
    t.equal((await postToken(token)).status, 200)
    const again = await signedInAs()
    t.equal((await postToken(token)).code, 'VALIDATION_FAILED')
    await again.request(`${APP}/api/zones`)
    t.ok(again.cookie(APP_HOST, 'auth_token'))
  })

  t.test('a logout token ends the sessions at once while Redis is unavailable, and is accepted again', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { REDIS_URL: redis.url } })
    provider.idToken = signed
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    await redis.kill()
    // It selects the session 'laptop', and those whose id is not known.
    const token = await signed(recipe({ sid: 'laptop' }))
    const body = new URLSearchParams({ logout_token: token }).toString()
    const post = () => gateway.send(PATH, { method: 'POST', headers: FORM, body })
    t.equal((await post()).code, 'INTERNAL')
    await browser.request(`${APP}/api/zones`)
    t.equal(browser.cookie(APP_HOST, 'auth_token'), undefined)

    await redis.restart()
    await eventually(async () => (await post()).status === 200)
  })
})
