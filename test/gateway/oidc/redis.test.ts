import { Redis } from 'ioredis'
import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import type { TestGateway } from '../../helper/gateway.js'
import { startBackend } from '../../helper/recording-backend.js'
import { startRedis } from '../../helper/redis.js'
import {
  APP,
  APP_HOST,
  backendWith,
  exchangesIn,
  signIn,
  signInUpToCallback,
  startOidcGateway,
  startProvider,
  visitorOf
} from './fixture.js'

const redis = await startRedis(t)
const backend = await startBackend(t)
const client = { grant_types: ['authorization_code', 'refresh_token'] }
const provider = await startProvider(t, { client })
const startShared = () => startOidcGateway(t, { issuer: provider.url, backend, env: { REDIS_URL: redis.url } })
const [one, two] = [await startShared(), await startShared()]
/** One that shares nothing but the secret, so that its sessions are new to both. */
const apart = await startOidcGateway(t, { issuer: provider.url })

t.beforeEach(() => {
  backend.requests.length = 0
  backend.answer = backendWith(['ada@example.com'])
})

// Ours, to look at what is there.
const asking = new Redis(redis.url, { maxRetriesPerRequest: 0, retryStrategy: () => null })
asking.on('error', () => undefined)
t.teardown(() => asking.disconnect())

/** The cookie of somebody whom both have never seen. */
const newSession = async (): Promise<{ cookie: string }> => {
  const visitor = visitorOf(apart)
  await signIn(visitor, 'ada')
  return { cookie: `oidc_session=${visitor.cookie(APP_HOST, 'oidc_session')}` }
}

t.test('two gateways with one Redis', async (t) => {
  t.test('sign in across each other: begun at one, finished at the other', async (t) => {
    const visitor = visitorOf(one)
    const callback = await signInUpToCallback(visitor, 'ada', '/floors')
    visitor.move(APP_HOST, two.url)
    t.equal((await visitor.visit(callback)).url.href, `${APP}/floors`)
  })

  t.test('make one exchange for requests that come to both at once', async (t) => {
    const headers = await newSession()

    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 ? one : two).send('/api/x', { headers }))
    )

    t.equal(exchangesIn(backend).length, 1)
    const tokens = answers.map(({ headers }) => headers['set-cookie']?.find((line) => line.startsWith('auth_token=')))
    t.match(tokens[0], /^auth_token=ey/)
    t.equal(new Set(tokens).size, 1, 'all of them got the same session')
    await two.send('/api/late', { headers })
    t.equal(exchangesIn(backend).length, 1)
  })

  t.test('know of a logout at the other, and so does one that starts later', async (t) => {
    const visitor = visitorOf(one)
    await signIn(visitor, 'ada')
    const cookie = visitor.cookieHeader(new URL(APP))
    t.equal(await isSignedIn(two, cookie), true)
    await visitor.request(`${APP}/auth/oidc/logout`)
    t.equal(await isSignedIn(one, cookie), false, 'here at once')
    await eventually(async () => !(await isSignedIn(two, cookie)))
    t.equal(exchangesIn(backend).length, 1)
    t.equal(await isSignedIn(await startShared(), cookie), false, 'one that has just started knows it at once')
  })

  t.test('keep nothing in Redis for ever, and tokens under lock and key', async (t) => {
    await signIn(visitorOf(one), 'ada')
    const keys = await asking.keys('gatehouse:oidc:*')
    for (const kind of ['tokens', 'result', 'ended']) t.ok(keys.some((key) => key.includes(`:${kind}`)))
    for (const key of keys) {
      t.ok((await asking.pttl(key)) > 0, `${key} ends by itself`)
      if (/:(?:tokens|result):/.test(key))
        t.match(await asking.get(key), /^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/, `${key} is sealed`)
    }
    t.equal(exchangesIn(backend).length, 1)
  })

  t.test('do not mind what else somebody says there', async (t) => {
    const [prefix] = (await asking.keys('gatehouse:oidc:*:ended')).map((key) => key.replace(/ended$/, ''))
    for (const text of ['nonsense', 'null', '7', '{}', '{"key":7,"at":"x"}']) {
      await asking.zadd(`${prefix}ended`, Date.now(), text)
      t.ok((await asking.publish(`${prefix}ends`, text)) >= 2, 'they have heard it')
    }
    const visitor = visitorOf(await startShared())
    t.equal((await signIn(visitor, 'ada', '/floors')).url.href, `${APP}/floors`)
    t.equal(await isSignedIn(one, visitor.cookieHeader(new URL(APP))), true)
  })

  t.test('make an exchange all the same while Redis hangs', async (t) => {
    const headers = await newSession()
    redis.pause()
    const answer = await two.send('/api/x', { headers })
    redis.resume()
    t.equal(exchangesIn(backend).length, 1, 'a Redis that hangs holds nobody up for long')
    t.ok(answer.headers['set-cookie']?.some((line) => line.startsWith('auth_token=ey')))
  })
})

const isSignedIn = async (gateway: TestGateway, cookie: string): Promise<boolean> => {
  await gateway.send('/api/who', { headers: { cookie } })
  return gateway.backend.requests.at(-1)?.headers.authorization !== undefined
}

t.test('when Redis is away', async (t) => {
  await redis.kill()

  t.test('a gateway signs people in and out by itself, and says so once', async (t) => {
    one.logs.length = 0
    const visitor = visitorOf(one)
    t.equal((await signIn(visitor, 'ada', '/floors')).url.href, `${APP}/floors`)
    const cookie = visitor.cookieHeader(new URL(APP))
    await visitor.request(`${APP}/auth/oidc/logout`)
    t.equal(await isSignedIn(one, cookie), false)
    t.equal(
      one.logs.filter(({ msg }) => msg === 'Redis unavailable, provider sessions local to this instance').length,
      1
    )
  })

  t.test('at the start, a gateway starts all the same', async (t) => {
    const visitor = visitorOf(await startShared())
    t.equal((await signIn(visitor, 'ada', '/floors')).url.href, `${APP}/floors`)
  })
})
