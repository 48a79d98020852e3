import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import { t } from 'tap'
import { redisUrl, startRedis } from './redis.js'

const client = (t: { teardown(fn: () => void): void }, url: string): Redis => {
  const redis = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null })
  // These tests break connections.
  redis.on('error', () => {})
  t.teardown(() => redis.disconnect())
  return redis
}

t.test('startRedis', async (t) => {
  t.test('startRedis starts an empty Redis', async (t) => {
    const { url } = await startRedis(t)

    t.equal(await client(t, url).dbsize(), 0)
  })

  t.test('startRedis starts a separate Redis for every caller', async (t) => {
    const [one, two] = await Promise.all([startRedis(t), startRedis(t)])

    await client(t, one.url).set('key', 'value')

    t.equal(await client(t, two.url).get('key'), null)
  })

  t.test('a killed Redis rejects connections', async (t) => {
    const { port, kill } = await startRedis(t)

    await kill()

    await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
  })

  t.test('restart starts an empty Redis on the same port', async (t) => {
    const redis = await startRedis(t)
    const connection = client(t, redis.url)
    await connection.set('key', 'value')

    await redis.kill()
    await redis.restart()

    t.equal(await connection.get('key'), null, 'the client reconnects')
  })

  t.test('a paused Redis does not respond', async (t) => {
    const redis = await startRedis(t)
    const connection = client(t, redis.url)
    await connection.ping()

    redis.pause()
    const pong = connection.ping().then(() => 'pong')
    const first = await Promise.race([pong, new Promise((resolve) => setTimeout(resolve, 100, 'waiting'))])
    redis.resume()

    t.equal(first, 'waiting')
    t.equal(await pong, 'pong')
  })

  t.test('startRedis passes arguments to redis-server', async (t) => {
    const { url } = await startRedis(t, { args: ['--requirepass', 'secret'] })

    await t.rejects(client(t, url).ping(), /NOAUTH/)
    t.equal(await client(t, url.replace('//', '//:secret@')).ping(), 'PONG')
  })

  t.test('teardown removes the process and the folder of Redis', async (t) => {
    let port = 0
    let folder = ''
    await t.test('a test that ends', async (t) => {
      const redis = await startRedis(t)
      port = redis.port
      folder = String([await client(t, redis.url).config('GET', 'dir')].flat()[1])
      t.ok(existsSync(folder))
    })

    t.notOk(existsSync(folder))
    await t.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' })
  })
})

t.test('redisUrl returns the address of a running Redis', async (t) => {
  t.equal(await client(t, await redisUrl(t)).ping(), 'PONG')
})
