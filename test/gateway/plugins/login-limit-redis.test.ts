import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helper/gateway.js'
import type { Answer } from '../../helper/http.js'
import { startRedis } from '../../helper/redis.js'

const AWAY = /^Redis unavailable\b/
const BACK = /^Redis available\b/

const startWith = (t: Test, redisUrl: string): Promise<TestGateway> =>
  startGateway(t, { env: { REDIS_URL: redisUrl, TRUST_PROXY: 'loopback' } })

const attempt = ({ send }: TestGateway, from: string): Promise<Answer> =>
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

const told = ({ logs }: TestGateway, what: RegExp): number => logs.filter(({ msg }) => what.test(String(msg))).length

/** Only the gateway knows when its connection stands again, and it tells at the next attempt: strangers make some. */
const untilBack = async (gateway: TestGateway): Promise<void> => {
  for (let host = 0; told(gateway, BACK) === 0; host++) {
    await attempt(gateway, `198.18.${host >> 8}.${host & 255}`)
    await delay(20)
  }
}

/** To look into a Redis with. */
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
    t.equal((await attempt(two, '203.0.113.2')).headers['x-ratelimit-remaining'], '4', 'another client is not counted')
    t.equal(told(one, AWAY) + told(one, BACK), 0, 'there is nothing to tell')
  })

  t.test('five of twenty pass that come to two gateways at once', async (t) => {
    const { url } = await startRedis(t)
    const gateways = await Promise.all([startWith(t, url), startWith(t, url)])

    const answers = await Promise.all(
      gateways.flatMap((gateway) => Array.from({ length: 10 }, () => attempt(gateway, '203.0.113.1')))
    )

    t.equal(answers.filter(({ status }) => status === 200).length, 5)
    t.equal(answers.filter(({ status }) => status === 429).length, 15)
  })

  t.test('a gateway that restarts goes on with the count', async (t) => {
    const { url } = await startRedis(t)
    const before = await startWith(t, url)
    t.same(await attempts(before, 4, '203.0.113.1'), [200, 200, 200, 200])
    await before.gateway.app.close()

    const after = await startWith(t, url)

    t.same(await attempts(after, 2, '203.0.113.1'), [200, 429])
  })

  t.test('the count ends with the window, which no attempt makes longer', async (t) => {
    const { url } = await startRedis(t)
    const client = openClient(t, url)
    const gateway = await startWith(t, url)

    await attempt(gateway, '203.0.113.1')
    const [key = '', ...others] = await client.keys('*')
    t.same(others, [], 'one key for one client')
    t.match(key, /^gatehouse:/, 'that nobody else in this Redis would use')
    const ttl = await client.pttl(key)
    t.ok(ttl > 0 && ttl <= 900_000, `${ttl} ms`)

    await client.pexpire(key, 60_000)
    const { headers } = await attempt(gateway, '203.0.113.1')
    t.ok((await client.pttl(key)) <= 60_000)
    t.ok(Number(headers['x-ratelimit-reset']) <= 60, 'and the client is told its end')
  })

  t.test('a count that has lost its end gets one again', async (t) => {
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

t.test('when Redis dies', async (t) => {
  t.test('a gateway goes on limiting by what it has counted itself', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    t.same(await attempts(gateway, 5, '203.0.113.1'), PASSED)
    t.same(await attempts(gateway, 2, '203.0.113.2'), [200, 200])

    await redis.kill()

    t.same(await attempts(gateway, 1, '203.0.113.1'), [429], 'who had used up the attempts')
    t.same(await attempts(gateway, 4, '203.0.113.2'), [200, 200, 200, 429], 'who had three left')
    t.same(await attempts(gateway, 6, '203.0.113.3'), [...PASSED, 429], 'who is new')
  })

  t.test('the log tells it once, however many attempts meet it', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    await attempt(gateway, '203.0.113.1')
    t.equal(told(gateway, AWAY), 0)

    await redis.kill()
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((host) => attempt(gateway, `203.0.113.${host}`)))
    await attempts(gateway, 3, '203.0.113.9')

    t.equal(told(gateway, AWAY), 1)
    t.match(
      gateway.logs.find(({ msg }) => AWAY.test(String(msg))),
      { level: 40, err: { message: /./ } },
      'as a warning'
    )
    t.equal(told(gateway, BACK), 0)
  })

  t.test('and comes back, gateways count together again and tell it once', async (t) => {
    const redis = await startRedis(t)
    const [one, two] = await Promise.all([startWith(t, redis.url), startWith(t, redis.url)])
    await redis.kill()
    t.same(await attempts(one, 5, '203.0.113.1'), PASSED)
    t.same(await attempts(two, 5, '203.0.113.1'), PASSED, 'meanwhile each counts alone')

    await redis.restart()
    await Promise.all([untilBack(one), untilBack(two)])

    t.same(await attempts(one, 3, '203.0.113.2'), [200, 200, 200])
    t.same(await attempts(two, 3, '203.0.113.2'), [200, 200, 429])
    t.same(await attempts(one, 1, '203.0.113.2'), [429])
    for (const gateway of [one, two]) t.same([told(gateway, AWAY), told(gateway, BACK)], [1, 1])
  })

  t.test('and comes back empty, who was limited stays limited', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    t.same(await attempts(gateway, 5, '203.0.113.1'), PASSED)
    await redis.kill()
    t.same(await attempts(gateway, 5, '203.0.113.2'), PASSED)

    await redis.restart()
    await untilBack(gateway)

    t.same(await attempts(gateway, 1, '203.0.113.1'), [429], 'counted before')
    t.same(await attempts(gateway, 1, '203.0.113.2'), [429], 'counted meanwhile')
  })

  t.test('a second time, the log tells it a second time', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    await redis.kill()
    await attempt(gateway, '203.0.113.1')
    await redis.restart()
    await untilBack(gateway)

    await redis.kill()
    await attempt(gateway, '203.0.113.1')

    t.same([told(gateway, AWAY), told(gateway, BACK)], [2, 1])
  })
})

t.test('when Redis hangs', async (t) => {
  t.test('attempts are answered and limited all the same', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(t, redis.url)
    t.same(await attempts(gateway, 2, '203.0.113.1'), [200, 200])

    redis.pause()
    const answers = await Promise.all(Array.from({ length: 4 }, () => attempt(gateway, '203.0.113.1')))

    t.same(answers.map(({ status }) => status).sort(), [200, 200, 200, 429])
    t.equal(told(gateway, AWAY), 1)
  })

  t.test('a gateway starts all the same', async (t) => {
    const redis = await startRedis(t)
    redis.pause()

    const gateway = await startWith(t, redis.url)

    t.equal(told(gateway, AWAY), 1)
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
  })
})

t.test('when Redis is down at the start', async (t) => {
  t.test('a gateway starts, says so once and limits alone', async (t) => {
    const redis = await startRedis(t)
    await redis.kill()

    const gateway = await startWith(t, redis.url)

    t.equal(told(gateway, AWAY), 1, 'before any attempt')
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
    t.equal(told(gateway, AWAY), 1, 'and not again')
  })

  t.test('and comes up later, gateways count together from then on', async (t) => {
    const redis = await startRedis(t)
    await redis.kill()
    const [one, two] = await Promise.all([startWith(t, redis.url), startWith(t, redis.url)])

    await redis.restart()
    await Promise.all([untilBack(one), untilBack(two)])

    t.same(await attempts(one, 3, '203.0.113.1'), [200, 200, 200])
    t.same(await attempts(two, 3, '203.0.113.1'), [200, 200, 429])
    for (const gateway of [one, two]) t.same([told(gateway, AWAY), told(gateway, BACK)], [1, 1])
  })

  t.test('a gateway does not wait until Redis has loaded its data', async (t) => {
    const url = await startLoadingRedis(t)

    const gateway = await startWith(t, url)

    t.equal(told(gateway, AWAY), 1)
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
  })

  t.test('a gateway whose password Redis refuses limits alone', async (t) => {
    const { url } = await startRedis(t, { args: ['--requirepass', 'secret'] })

    const gateway = await startWith(t, url.replace('//', '//:wrong@'))

    t.equal(told(gateway, AWAY), 1)
    t.same(await attempts(gateway, 6, '203.0.113.1'), [...PASSED, 429])
    t.equal(told(gateway, AWAY), 1)
  })
})

/** Answers as a Redis with much data does in its first minutes: a connection is welcome, and nothing else. */
const startLoadingRedis = async (t: Test): Promise<string> => {
  const info = 'loading:1\r\nloading_eta_seconds:600\r\n'
  const answers: Record<string, string> = {
    hello: '+OK\r\n',
    client: '+OK\r\n',
    info: `$${info.length}\r\n${info}\r\n`
  }
  const server = createServer((socket) => {
    t.teardown(() => socket.destroy())
    socket.setEncoding('latin1').on('data', (text) => {
      for (const [, command = ''] of String(text).matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g))
        socket.write(answers[command.toLowerCase()] ?? '-LOADING Redis is loading the dataset in memory\r\n')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
}
