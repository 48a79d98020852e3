import { Redis } from 'ioredis'
import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { startRedis } from '../../helper/redis.js'
import { ALL, Delivered, optionsOf, WITH_HISTORY } from './contract.js'
import { redisEngine } from './redis-fixture.js'

const END = { ...ALL, limit: 0 }
const LIFETIME_MS = WITH_HISTORY.historyMetaTtlMs
const SHORTER = optionsOf({ history_size: 3, history_ttl: '60s', history_meta_ttl: '600s' })

const { url } = await startRedis(t)
const redis = new Redis(url)
t.teardown(() => redis.disconnect())

t.test('channels that have never had a publication', async (t) => {
  const { broker, history, prefix, advance } = redisEngine(t, url)
  await broker.start(new Delivered())
  const publish = (channel: string) => broker.publish(channel, { ...PLAIN_PUBLICATION, data: '1' }, WITH_HISTORY)
  const { epoch } = await history.read('ns:1', END, WITH_HISTORY)
  const shared = `${prefix}!{all}unused:${LIFETIME_MS}`

  t.test('share an epoch, which is the only thing stored', async (t) => {
    t.match(await history.read('ns:2', END, WITH_HISTORY), { epoch, offset: 0 })
    t.same(await redis.keys(`${prefix}{*`), [])
    t.match(await redis.hgetall(shared), { e: epoch })
  })

  t.test('with another lifetime have another epoch', async (t) => {
    t.not((await history.read('ns:3', END, SHORTER)).epoch, epoch)
  })

  t.test('begin their stream with it, also in a broadcast', async (t) => {
    t.match(await publish('ns:1'), { epoch, offset: 1, suppressedBy: null })
    const targets = ['ns:1', 'ns:4'].map((channel) => ({ channel, options: WITH_HISTORY }))
    const outcomes = await broker.publishToMany?.(targets, { ...PLAIN_PUBLICATION, data: '2' })
    t.match(outcomes, [
      { epoch, offset: 2 },
      { epoch, offset: 1 }
    ])
  })

  t.test('keep it as long as they have subscribers', async (t) => {
    await history.read('ns:5', { ...END, isSubscribed: true }, WITH_HISTORY)
    await redis.del(shared)
    t.match(await history.read('ns:5', END, WITH_HISTORY), { epoch, offset: 0 })
    t.match(await publish('ns:5'), { epoch, offset: 1 })
    t.not((await history.read('ns:2', END, WITH_HISTORY)).epoch, epoch)
  })

  t.test('have another epoch than before their position expired', async (t) => {
    const before = await publish('ns:6')
    await advance(LIFETIME_MS)
    t.not((await publish('ns:6')).epoch, before.epoch)
  })

  t.test('have another epoch than before Redis was flushed', async (t) => {
    const before = await publish('ns:7')
    await redis.flushall()
    t.not((await publish('ns:7')).epoch, before.epoch)
  })
})
