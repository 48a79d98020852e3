import { Redis } from 'ioredis'
import jwt from 'jsonwebtoken'
import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { API_SECRET } from '../../helper/gateway.js'
import { detailsOf } from '../../helper/http.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import { getWith, type RevocableGateway, startRevocable, tokenFrom } from './fixture.js'

const startWith = (t: Test, url: string, redisTimeouts = PATIENT_TIMEOUTS): Promise<RevocableGateway> =>
  startRevocable(t, { env: { REDIS_URL: url }, redisTimeouts })

/** For a Redis that does not respond. */
const SHORT_TIMEOUTS = { connect: 200, ready: 300, command: 50 }

const metric = async (gateway: RevocableGateway, name: string): Promise<number> => {
  const { body } = await gateway.send('/metrics')
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(body)?.[1])
}

t.test('a revocation is in effect at all gateways', async (t) => {
  const { url } = await startRedis(t)
  const [one, two] = await Promise.all([startWith(t, url), startWith(t, url)])
  const token = tokenFrom(5, { userId: 'ada' })
  t.equal((await getWith(two, token)).status, 200)
  t.equal((await one.revoke({ user: 'ada' })).status, 200)
  await eventually(async () => (await getWith(two, token)).status === 401)
  t.equal(await metric(two, 'gateway_revocations'), 1)
  t.equal(await metric(two, 'gateway_revocations_shared'), 1)
})

t.test('a revocation is in effect at gateways that start later, and expires with the tokens', async (t) => {
  const { url } = await startRedis(t)
  const one = await startWith(t, url)
  t.equal((await one.revoke({ user: 'ada' })).status, 200)
  await one.gateway.app.close()
  const two = await startWith(t, url)
  t.equal((await getWith(two, tokenFrom(5, { userId: 'ada' }))).status, 401)

  const redis = new Redis(url)
  t.teardown(() => redis.disconnect())
  const [key = ''] = await redis.keys('gatehouse:revoked:*')
  const ttl = await redis.ttl(key)
  t.ok(ttl > 2_591_000 && ttl <= 2_592_000)
  t.notOk((await redis.zrange(key, '0', '-1')).join().includes('ada'), 'without the name of the user')
})

t.test('a token of the second of the revocation is valid at another gateway after its sign-in', async (t) => {
  const { url } = await startRedis(t)
  const [one, two] = await Promise.all([startWith(t, url), startWith(t, url)])
  const { data } = JSON.parse((await one.revoke({ user: 'ada' })).body)
  const iat = Math.floor(data.issuedBefore)
  const token = jwt.sign({ userId: 'ada', iat, exp: iat + 600 }, API_SECRET)
  await eventually(async () => (await getWith(two, token)).status === 401)

  one.backend.respond = (_request, response) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ success: true, data: { token, user: { userId: 'ada' }, expiresIn: 60 } }))
  await one.send('/api/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"email":"ada@example.com","password":"x"}'
  })
  await eventually(async () => (await getWith(two, token)).status === 200)
})

t.test('while Redis is unavailable', async (t) => {
  t.test('a gateway that has not loaded the revocations accepts no token', async (t) => {
    const redis = await startRedis(t)
    await redis.kill()
    const gateway = await startWith(t, redis.url, SHORT_TIMEOUTS)
    const token = tokenFrom(5, { userId: 'ada' })
    const response = await getWith(gateway, token)
    t.equal(response.status, 503)
    t.equal(response.code, 'REVOCATIONS_UNKNOWN')
    t.equal(response.headers['retry-after'], '1')
    t.equal((await getWith(gateway, token, '/api/zones')).status, 503, 'a read whose access the backend decides')
    const headers = { authorization: `Bearer ${token}` }
    t.equal((await gateway.send('/api/zones', { headers })).status, 503, 'a Bearer header')
    t.equal((await gateway.send('/api/zones')).status, 200, 'a request without a token')
    t.equal((await getWith(gateway, token, '/api/auth/csrf-token')).status, 200, 'a public path')
    t.equal(await metric(gateway, 'gateway_revocations_known'), 0)

    await redis.restart()
    await eventually(async () => (await getWith(gateway, token)).status === 200)
    t.equal(await metric(gateway, 'gateway_revocations_known'), 1)
  })

  t.test(
    'a gateway that has loaded the revocations continues, and a revocation is reported as incomplete',
    async (t) => {
      const redis = await startRedis(t)
      const one = await startWith(t, redis.url)
      const two = await startWith(t, redis.url)
      t.equal((await one.revoke({ user: 'ada' })).status, 200)
      await eventually(async () => (await getWith(two, tokenFrom(5, { userId: 'ada' }))).status === 401)
      await redis.kill()
      await eventually(async () => (await metric(two, 'gateway_revocations_shared')) === 0)

      t.equal((await getWith(two, tokenFrom(5, { userId: 'ada' }))).status, 401, 'still revoked')
      t.equal((await getWith(two, tokenFrom(5, { userId: 'bob' }))).status, 200, 'still valid')
      const response = await one.revoke({ user: 'bob' })
      t.equal(response.status, 503)
      t.equal(response.code, 'REVOCATION_INCOMPLETE')
      t.match(detailsOf(response), [{ path: '/gateways' }])
      t.equal(
        (await getWith(one, tokenFrom(5, { userId: 'bob' }))).status,
        401,
        'in effect at the gateway that was asked'
      )

      await redis.restart()
      await eventually(async () => (await getWith(two, tokenFrom(5, { userId: 'bob' }))).status === 401)
    }
  )
})
