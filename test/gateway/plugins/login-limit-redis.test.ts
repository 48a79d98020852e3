import { once } from 'node:events'
import { createServer } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { portOf } from '../../helper/address.js'
import { eventually } from '../../helper/eventually.js'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import type { HttpResponse } from '../../helper/http.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'

const UNAVAILABLE = /^Redis unavailable\b/
const AVAILABLE = /^Redis available\b/

const startWith = (t: Test, redisUrl: string, redisTimeouts = PATIENT_TIMEOUTS): Promise<TestGateway> =>
  startGateway(t, { env: { REDIS_URL: redisUrl, TRUST_PROXY: 'loopback' }, redisTimeouts })

/** For a Redis that does not respond. */
const SHORT_TIMEOUTS = { connect: 200, ready: 300, command: 50 }

const attempt = ({ send }: TestGateway, from: string): Promise<HttpResponse> =>
  send('/api/auth/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': from },
    body: '{"email":"ada@example.com","password":"a guess"}'
  })

const attempts = async (gateway: TestGateway, count: number, from: string): Promise<number[]> => {
  const statuses: number[] = []
  while (statuses.length < count) statuses.push((await attempt(gateway, from)).status)
  return statuses
}

const logCount = ({ logs }: TestGateway, message: RegExp): number =>
  logs.filter(({ msg }) => message.test(String(msg))).length

/** The gateway logs a restored connection at the next attempt, so this makes attempts from other addresses. */
const untilAvailable = async (gateway: TestGateway): Promise<void> => {
  let host = 0
  await eventually(async () => {
    await attempt(gateway, `198.18.${host >> 8}.${host++ & 255}`)
    return logCount(gateway, AVAILABLE) > 0
  })
}

const openClient = (t: Test, url: string): Redis => {
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  return client
}

const PASSED = Array(5).fill(200)

t.test('with Redis', async (t) => {
  t.test('two gateways share one count', async (t) => {
    const { url } = await startRedis(t)
    const [one, two] = await Promise.all([startWith(t, url), startWith(t, url)])

    t.same(await attempts(one, 3, '203.0.113.1'), [200, 200, 200])
    t.same(await attempts(two, 2, '203.0.113.1'), [200, 200])

    const [onOne, onTwo] = [await attempt(one, '203.0.113.1'), await attempt(two, '203.0.113.1')]
    for (const { status, code, headers } of [onOne, onTwo]) {
      t.equal(status, 429)
      t.equal(code, 'RATE_LIMITED')
      t.equal(headers['retry-after'], headers['x-ratelimit-reset'])
      t.ok(Number(headers['retry-after']) >= 1 && Number(headers['retry-after']) <= 900)
    }
    t.equal(
      (await attempt(two, '203.0.113.2')).headers['x-ratelimit-remaining'],
      '4',
      'another client has its own count'
    )
    t.equal(logCount(one, UNAVAILABLE) + logCount(one, AVAILABLE), 0, 'no outage is logged')
  })

  t.test('two gateways let five of twenty concurrent attempts pass', async (t) => {
    const { url } = await startRedis(t)
    const gateways = await Promise.all([startWith(t, url), startWith(t, url)])

    const responses = await Promise.all(
      gateways.flatMap((gateway) => Array.from({ length: 10 }, () => attempt(gateway, '203.0.113.1')))
    )

    t.equal(responses.filter(({ status }) => status === 200).length, 5)
    t.equal(responses.filter(({ status }) => status === 429).length, 15)
  })

  t.test('a restarted gateway continues the count', async (t) => {
    const { url } = await startRedis(t)
    const before = await startWith(t, url)
    t.same(await attempts(before, 4, '203.0.113.1'), [200, 200, 200, 200])
    await before.gateway.app.close()

    const after = await startWith(t, url)

    t.same(await attempts(after, 2, '203.0.113.1'), [200, 429])
  })

  t.test('attempts do not extend the window', async (t) => {
    const { url } = await startRedis(t)
    const client = openClient(t, url)
    const gateway = await startWith(t, url)

    await attempt(gateway, '203.0.113.1')
    const [key = '', ...others] = await client.keys('*')
    t.same(others, [], 'one key per client')
    t.match(key, /^gatehouse:/, 'with our prefix')
    const ttl = await client.pttl(key)
    t.ok(ttl > 0 && ttl <= 900_000, `${ttl} ms`)

    await client.pexpire(key, 60_000)
    const { headers } = await attempt(gateway, '203.0.113.1')
    t.ok((await client.pttl(key)) <= 60_000)
    t.ok(Number(headers['x-ratelimit-reset']) <= 60, 'the response has the end of the window')
  })

  t.test('a count without an expiry gets one again', async (t) => {
    const { url } = await startRedis(t)
    const client = openClient(t, url)
    const gateway = await startWith(t, url)
    await attempt(gateway, '203.0.113.1')
    const [key = ''] = await client.keys('*')
    await client.persist(key)
    t.equal(await client.pttl(key), -1)

    const { headers } = await attempt(gateway, '203.0.113.1')

    const ttl = await client.pttl(key)
    t.ok(ttl > 0 && ttl <= 900_000, `${ttl} ms`)
    t.equal(headers['x-ratelimit-remaining'], '3')
    t.match(headers['x-ratelimit-reset'], /^[1-9]\d{0,2}$/)
  })
})

t.test('Redis crash', async (t) => {
  t.test('a gateway enforces the limit on its own counts after Redis has crashed', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    t.same(await attempts(gateway, 5, '203.0.113.1'), PASSED)
    t.same(await attempts(gateway, 2, '203.0.113.2'), [200, 200])

    await redis.kill()

    t.same(await attempts(gateway, 1, '203.0.113.1'), [429], 'no attempts left')
    t.same(await attempts(gateway, 4, '203.0.113.2'), [200, 200, 200, 429], 'three attempts left')
    t.same(await attempts(gateway, 6, '203.0.113.3'), [...PASSED, 429], 'a new client')
  })

  t.test('an outage is logged once, however many attempts fail', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    await attempt(gateway, '203.0.113.1')
    t.equal(logCount(gateway, UNAVAILABLE), 0)

    await redis.kill()
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((host) => attempt(gateway, `203.0.113.${host}`)))
    await attempts(gateway, 3, '203.0.113.9')

    t.equal(logCount(gateway, UNAVAILABLE), 1)
    t.match(
      gateway.logs.find(({ msg }) => UNAVAILABLE.test(String(msg))),
      { level: 40, err: { message: /./ } },
      'as a warning'
    )
    t.equal(logCount(gateway, AVAILABLE), 0)
  })

  t.test('gateways share one count again after Redis has restarted, and log it once', async (t) => {
    const redis = await startRedis(t)
    const [one, two] = await Promise.all([startWith(t, redis.url), startWith(t, redis.url)])
    await redis.kill()
    t.same(await attempts(one, 5, '203.0.113.1'), PASSED)
    t.same(await attempts(two, 5, '203.0.113.1'), PASSED, 'each gateway has its own count')

    await redis.restart()
    await Promise.all([untilAvailable(one), untilAvailable(two)])

    t.same(await attempts(one, 3, '203.0.113.2'), [200, 200, 200])
    t.same(await attempts(two, 3, '203.0.113.2'), [200, 200, 429])
    t.same(await attempts(one, 1, '203.0.113.2'), [429])
    for (const gateway of [one, two]) t.same([logCount(gateway, UNAVAILABLE), logCount(gateway, AVAILABLE)], [1, 1])
  })

  t.test('a limited client stays limited if Redis restarts without data', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    t.same(await attempts(gateway, 5, '203.0.113.1'), PASSED)
    await redis.kill()
    t.same(await attempts(gateway, 5, '203.0.113.2'), PASSED)

    await redis.restart()
    await untilAvailable(gateway)

    t.same(await attempts(gateway, 1, '203.0.113.1'), [429], 'counted before the outage')
    t.same(await attempts(gateway, 1, '203.0.113.2'), [429], 'counted during the outage')
  })

  t.test('a second outage is logged again', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    await redis.kill()
    await attempt(gateway, '203.0.113.1')
    await redis.restart()
    await untilAvailable(gateway)

    await redis.kill()
    await attempt(gateway, '203.0.113.1')

    t.same([logCount(gateway, UNAVAILABLE), logCount(gateway, AVAILABLE)], [2, 1])
  })
})

t.test('Redis hang', async (t) => {
  t.test('attempts are limited while Redis hangs', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url, SHORT_TIMEOUTS)
    t.same(await attempts(gateway, 2, '203.0.113.1'), [200, 200])

    redis.pause()
    const responses = await Promise.all(Array.from({ length: 4 }, () => attempt(gateway, '203.0.113.1')))

    t.same(responses.map(({ status }) => status).sort(), [200, 200, 200, 429])
    // On a slow machine, the short timeout may have passed once before Redis was paused.
    t.ok(logCount(gateway, UNAVAILABLE) > 0)
  })

  t.test('a gateway starts while Redis hangs', async (t) => {
    const redis = await startRedis(t)
    redis.pause()

    const gateway = await startWith(t, redis.url, SHORT_TIMEOUTS)

    t.equal(logCount(gateway, UNAVAILABLE), 1)
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
  })
})

t.test('start without Redis', async (t) => {
  t.test('a gateway that starts without Redis logs it once and enforces the limit alone', async (t) => {
    const redis = await startRedis(t)
    await redis.kill()

    const gateway = await startWith(t, redis.url)

    t.equal(logCount(gateway, UNAVAILABLE), 1, 'before the first attempt')
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
    t.equal(logCount(gateway, UNAVAILABLE), 1, 'not logged again')
  })

  t.test('gateways share one count once Redis has started', async (t) => {
    const redis = await startRedis(t)
    await redis.kill()
    const [one, two] = await Promise.all([startWith(t, redis.url), startWith(t, redis.url)])

    await redis.restart()
    await Promise.all([untilAvailable(one), untilAvailable(two)])

    t.same(await attempts(one, 3, '203.0.113.1'), [200, 200, 200])
    t.same(await attempts(two, 3, '203.0.113.1'), [200, 200, 429])
    for (const gateway of [one, two]) t.same([logCount(gateway, UNAVAILABLE), logCount(gateway, AVAILABLE)], [1, 1])
  })

  t.test('a gateway starts while Redis is loading its data', async (t) => {
    const url = await startLoadingRedis(t)

    const gateway = await startWith(t, url, SHORT_TIMEOUTS)

    t.equal(logCount(gateway, UNAVAILABLE), 1)
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
  })

  t.test('a gateway whose Redis password is rejected enforces the limit alone', async (t) => {
    const { url } = await startRedis(t, { args: ['--requirepass', 'secret'] })

    const gateway = await startWith(t, url.replace('//', '//:wrong@'))

    t.equal(logCount(gateway, UNAVAILABLE), 1)
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
    t.equal(logCount(gateway, UNAVAILABLE), 1)
  })
})

/** Accepts connections and responds with LOADING, as a Redis does while it loads its data. */
const startLoadingRedis = async (t: Test): Promise<string> => {
  const info = 'loading:1\r\nloading_eta_seconds:600\r\n'
  const responses: Record<string, string> = {
    hello: '+OK\r\n',
    client: '+OK\r\n',
    info: `$${info.length}\r\n${info}\r\n`
  }
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy())
    socket.setEncoding('latin1').on('data', (text) => {
      for (const [, command = ''] of String(text).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g))
        socket.write(responses[command.toLowerCase()] ?? '-LOADING Redis is loading the dataset in memory\r\n')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return `redis://127.0.0.1:${portOf(server)}`
}
