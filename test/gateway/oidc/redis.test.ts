import { Redis } from 'ioredis'
import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import type { TestGateway } from '../../helper/gateway.js'
import { startBackend } from '../../helper/recording-backend.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import {
  APP,
  APP_HOST,
  backendWith,
  browserOf,
  exchangesIn,
  type OidcGatewayOptions,
  signIn,
  signInUpToCallback,
  startOidcGateway,
  startProvider
} from './fixture.js'

const redis = await startRedis(t)
const backend = await startBackend(t)
const client = { grant_types: ['authorization_code', 'refresh_token'] }
const provider = await startProvider(t, { client })
const startShared = (options: Partial<OidcGatewayOptions> = { redisTimeouts: PATIENT_TIMEOUTS }) =>
  startOidcGateway(t, { issuer: provider.url, backend, env: { REDIS_URL: redis.url }, ...options })
const [one, two] = [await startShared(), await startShared()]
/** A gateway without Redis but with the same secret, so that its sessions are new to the others. */
const apart = await startOidcGateway(t, { issuer: provider.url })

t.beforeEach(() => {
  backend.requests.length = 0
  backend.respond = backendWith(['ada@example.com'])
})

const redisClient = new Redis(redis.url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
redisClient.on('error', () => undefined)
t.teardown(() => redisClient.disconnect())

/** The session cookie of a user that both gateways have not seen before. */
const newSession = async (): Promise<{ cookie: string }> => {
  const browser = browserOf(apart)
  await signIn(browser, 'ada')
  return { cookie: `oidc_session=${browser.cookie(APP_HOST, 'oidc_session')}` }
}

t.test('two gateways with one Redis', async (t) => {
  t.test('a sign-in started at one gateway is completed at the other', async (t) => {
    const browser = browserOf(one)
    const callback = await signInUpToCallback(browser, 'ada', '/floors')
    browser.move(APP_HOST, two.url)
    t.equal((await browser.visit(callback)).url.href, `${APP}/floors`)
  })

  t.test('concurrent requests to both gateways share one exchange', async (t) => {
    const headers = await newSession()

    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? one : two).send('/api/x', { headers }))
    )

    t.equal(exchangesIn(backend).length, 1)
    const tokens = responses.map(({ headers }) => headers['set-cookie']?.find((line) => line.startsWith('auth_token=')))
    t.match(tokens[0], /^auth_token=ey/)
    t.equal(new Set(tokens).size, 1, 'all responses have the same session')
    await two.send('/api/late', { headers })
    t.equal(exchangesIn(backend).length, 1)
  })

  t.test('a logout at one gateway reaches the other and one that starts later', async (t) => {
    const browser = browserOf(one)
    await signIn(browser, 'ada')
    const cookie = browser.cookieHeader(new URL(APP))
    t.equal(await isSignedIn(two, cookie), true)
    await browser.request(`${APP}/auth/oidc/logout`)
    t.equal(await isSignedIn(one, cookie), false, 'immediately at the same gateway')
    await eventually(async () => !(await isSignedIn(two, cookie)))
    t.equal(exchangesIn(backend).length, 1)
    t.equal(await isSignedIn(await startShared(), cookie), false, 'immediately at a new gateway')
  })

  t.test('every key in Redis expires, and tokens are encrypted', async (t) => {
    await signIn(browserOf(one), 'ada')
    const keys = await redisClient.keys('gatehouse:oidc:*')
    for (const kind of ['tokens', 'exchange', 'ended']) t.ok(keys.some((key) => key.includes(`:${kind}`)))
    for (const key of keys) {
      t.ok((await redisClient.pttl(key)) > 0, `${key} expires`)
      if (/:(?:tokens|result):/.test(key))
        t.match(await redisClient.get(key), /^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/, `${key} is encrypted`)
    }
    t.equal(exchangesIn(backend).length, 1)
  })

  t.test('malformed revocations in Redis are ignored', async (t) => {
    const [prefix] = (await redisClient.keys('gatehouse:oidc:*:ended')).map((key) => key.replace(/ended$/, ''))
    for (const text of ['nonsense', 'null', '7', '{}', '{"key":7,"at":"x"}']) {
      await redisClient.zadd(`${prefix}ended`, Date.now(), text)
      t.ok((await redisClient.publish(`${prefix}ends`, text)) >= 2, 'both gateways are subscribed')
    }
    const browser = browserOf(await startShared())
    t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
    t.equal(await isSignedIn(one, browser.cookieHeader(new URL(APP))), true)
  })

  t.test('a gateway makes the exchange while Redis hangs', async (t) => {
    const impatient = await startShared({})
    const headers = await newSession()
    redis.pause()
    const response = await impatient.send('/api/x', { headers })
    redis.resume()
    t.equal(exchangesIn(backend).length, 1, 'the gateway did not wait for Redis')
    t.ok(response.headers['set-cookie']?.some((line) => line.startsWith('auth_token=ey')))
  })
})

const isSignedIn = async (gateway: TestGateway, cookie: string): Promise<boolean> => {
  await gateway.send('/api/who', { headers: { cookie } })
  return gateway.backend.requests.at(-1)?.headers.authorization !== undefined
}

t.test('without Redis', async (t) => {
  await redis.kill()

  t.test('a gateway without Redis handles sign-in and logout and logs the outage once', async (t) => {
    one.logs.length = 0
    const browser = browserOf(one)
    t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
    const cookie = browser.cookieHeader(new URL(APP))
    await browser.request(`${APP}/auth/oidc/logout`)
    t.equal(await isSignedIn(one, cookie), false)
    t.equal(
      one.logs.filter(({ msg }) => msg === 'Redis unavailable, provider sessions local to this instance').length,
      1
    )
  })

  t.test('a gateway starts while Redis is unavailable', async (t) => {
    const browser = browserOf(await startShared())
    t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
  })
})
