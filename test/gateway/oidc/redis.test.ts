import t from 'tap'
import type { TestGateway } from '../../helper/gateway.js'
import { startBackend } from '../../helper/recording-backend.js'
import { redisUrl, startRedis } from '../../helper/redis.js'
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

type T = Parameters<typeof startProvider>[0]

const startTwo = async (t: T, url: string, client: object = {}) => {
  const backend = await startBackend(t)
  backend.answer = backendWith(['ada@example.com'])
  const provider = await startProvider(t, { client })
  const env = { REDIS_URL: url }
  const one = await startOidcGateway(t, { issuer: provider.url, backend, env })
  const two = await startOidcGateway(t, { issuer: provider.url, backend, env })
  return { backend, provider, one, two, visitor: visitorOf(one) }
}

/** Resolves when it answers as it should; hearing of an end takes a moment. */
const until = async (isSo: () => Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
}

t.test('two gateways with one Redis', async (t) => {
  t.test('sign in across each other: begun at one, finished at the other', async (t) => {
    const { two, visitor } = await startTwo(t, await redisUrl(t))
    const callback = await signInUpToCallback(visitor, 'ada', '/floors')
    visitor.move(APP_HOST, two.url)
    t.equal((await visitor.visit(callback)).url.href, `${APP}/floors`)
  })

  t.test('make one exchange for requests that come to both at once', async (t) => {
    const { backend, provider, one, two } = await startTwo(t, await redisUrl(t))
    // One that shares nothing but the secret, so that the session is new to both.
    const apart = await startOidcGateway(t, { issuer: provider.url })
    const visitor = visitorOf(apart)
    await signIn(visitor, 'ada')
    const headers = { cookie: `oidc_session=${visitor.cookie(APP_HOST, 'oidc_session')}` }

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

  t.test('make an exchange all the same while Redis hangs', async (t) => {
    const redis = await startRedis(t)
    const { backend, provider, two } = await startTwo(t, redis.url)
    const apart = await startOidcGateway(t, { issuer: provider.url })
    const visitor = visitorOf(apart)
    await signIn(visitor, 'ada')
    redis.pause()
    const answer = await two.send('/api/x', {
      headers: { cookie: `oidc_session=${visitor.cookie(APP_HOST, 'oidc_session')}` }
    })
    redis.resume()
    t.equal(exchangesIn(backend).length, 1, 'a Redis that hangs holds nobody up for long')
    t.ok(answer.headers['set-cookie']?.some((line) => line.startsWith('auth_token=ey')))
  })

  t.test('know of a logout at the other', async (t) => {
    const { backend, one, two, visitor } = await startTwo(t, await redisUrl(t))
    await signIn(visitor, 'ada')
    const cookie = visitor.cookieHeader(new URL(APP))
    t.equal(await isSignedIn(two, cookie), true)
    await visitor.request(`${APP}/auth/oidc/logout`)
    t.equal(await isSignedIn(one, cookie), false, 'here at once')
    await until(async () => !(await isSignedIn(two, cookie)))
    t.pass('and there')
    t.equal(exchangesIn(backend).length, 1)
  })

  t.test('know what another had ended before they started', async (t) => {
    const redis = await startRedis(t)
    const { provider, backend, visitor } = await startTwo(t, redis.url)
    await signIn(visitor, 'ada')
    const cookie = visitor.cookieHeader(new URL(APP))
    await visitor.request(`${APP}/auth/oidc/logout`)
    const late = await startOidcGateway(t, { issuer: provider.url, backend, env: { REDIS_URL: redis.url } })
    t.equal(await isSignedIn(late, cookie), false, 'one that has just started knows it at once')
  })

  t.test('hold tokens in Redis under lock and key', async (t) => {
    const redis = await startRedis(t)
    const { visitor, backend } = await startTwo(t, redis.url, { grant_types: ['authorization_code', 'refresh_token'] })
    await signIn(visitor, 'ada')
    const { Redis } = await import('ioredis')
    const client = new Redis(redis.url)
    t.teardown(() => client.disconnect())
    const keys = await client.keys('*')
    t.ok(keys.some((key) => /^gatehouse:oidc:[\w-]{11}:tokens:/.test(key)))
    for (const key of keys) {
      t.ok((await client.pttl(key)) > 0, `${key} ends by itself`)
      t.match(await client.get(key), /^[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/, `${key} is sealed`)
    }
    t.equal(exchangesIn(backend).length, 1)
  })
})

const isSignedIn = async (gateway: TestGateway, cookie: string): Promise<boolean> => {
  await gateway.send('/api/who', { headers: { cookie } })
  return gateway.backend.requests.at(-1)?.headers.authorization !== undefined
}

t.test('when Redis is away', async (t) => {
  t.test('a gateway signs people in and out by itself, and says so once', async (t) => {
    const redis = await startRedis(t)
    const { one, visitor } = await startTwo(t, redis.url)
    await redis.kill()
    t.equal((await signIn(visitor, 'ada', '/floors')).url.href, `${APP}/floors`)
    const cookie = visitor.cookieHeader(new URL(APP))
    await visitor.request(`${APP}/auth/oidc/logout`)
    t.equal(await isSignedIn(one, cookie), false)
    t.equal(
      one.logs.filter(({ msg }) => /provider sessions are known to this instance alone/.test(String(msg))).length,
      1
    )
  })

  t.test('at the start, a gateway starts all the same', async (t) => {
    const redis = await startRedis(t)
    await redis.kill()
    const { visitor } = await startTwo(t, redis.url)
    t.equal((await signIn(visitor, 'ada', '/floors')).url.href, `${APP}/floors`)
  })
})
