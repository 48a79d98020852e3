import t from 'tap'
import { RedisKeys } from '../../../src/relay/engine/redis/keys.js'
import { HashRing } from '../../../src/relay/engine/redis/topology.js'

t.test('the hash ring', async (t) => {
  const servers = ['a:1', 'b:1', 'c:1', 'd:1'].map((name) => ({ name }))
  const channels = Array.from({ length: 20_000 }, (_, n) => `floor:${n}`)
  const serversIn = (ring: HashRing<{ name: string }>) => channels.map((channel) => ring.serverOf(channel).name)

  t.test('every server gets about the same share, in whatever order the servers are listed', async (t) => {
    const assigned = serversIn(new HashRing(servers))
    t.same(serversIn(new HashRing(servers.toReversed())), assigned)
    for (const { name } of servers) {
      const share = assigned.filter((server) => server === name).length / channels.length
      t.ok(share > 0.18 && share < 0.32, `${name} has ${share}`)
    }
  })

  t.test('only the channels of a removed server move', async (t) => {
    const [before, after] = [serversIn(new HashRing(servers)), serversIn(new HashRing(servers.slice(1)))]
    t.ok(before.every((server, index) => server === 'a:1' || server === after[index]))
  })
})

t.test('Redis keys', async (t) => {
  t.test('only the topic of a channel is converted back to the channel', async (t) => {
    const keys = new RedisKeys('x')
    for (const channel of ['floor:7', '', '}', '{:a}', 'a}b']) t.equal(keys.channelOf(keys.channel(channel)), channel)
    for (const topic of ['x', 'y{:a}', 'x{a}', 'x{:a', keys.control('nodes')]) t.equal(keys.channelOf(topic), null)
  })
})
