import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import { t } from 'tap'
import { startRedis } from './redis.js'

const client = (t: { teardown(fn: () => void): void }, url: string): Redis => {
  const redis = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null })
  // These tests break connections.
  redis.on('error', () => {})
  t.teardown(() => redis.disconnect())
  return redis
}

// The tests of the Redis engine kill, restart and pause one.
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
