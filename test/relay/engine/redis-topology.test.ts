import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import t from 'tap'
import { RedisKeys } from '../../../src/relay/engine/redis/keys.js'
import { HashRing, RedisClusterTopology } from '../../../src/relay/engine/redis/topology.js'
import { parseRedisUrl } from '../../../src/shared/redis-address.js'
import { portOf } from '../../helper/address.js'

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

t.test('a Redis Cluster that is closed while it reads its slot table opens no server', async (t) => {
  let received = (_: Socket): void => undefined
  const asked = new Promise<Socket>((resolve) => {
    received = resolve
  })
  // Answers every command except CLUSTER SLOTS with OK.
  const server = createServer((socket) => {
    socket.on('data', (data) => {
      const commands = data
        .toString()
        .split(/^\*\d+\r\n/m)
        .slice(1)
      for (const command of commands) {
        if (/slots/i.test(command)) received(socket)
        else socket.write('+OK\r\n')
      }
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const port = portOf(server)
  const seeds = parseRedisUrl(`redis://127.0.0.1:${port}`).filter((address) => address.kind === 'server')
  let opened = 0
  const topology = new RedisClusterTopology(
    seeds,
    () => {
      opened++
      throw new Error('opened')
    },
    () => undefined
  )
  const refreshed = topology.refresh()
  const socket = await asked
  topology.close()
  socket.write(`*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`)
  await refreshed

  t.equal(opened, 0)
})

t.test('Redis keys', async (t) => {
  t.test('only the topic of a channel is converted back to the channel', async (t) => {
    const keys = new RedisKeys('x')
    for (const channel of ['floor:7', '', '}', '{:a}', 'a}b']) t.equal(keys.channelOf(keys.channel(channel)), channel)
    for (const topic of ['x', 'y{:a}', 'x{a}', 'x{:a', keys.control('nodes')]) t.equal(keys.channelOf(topic), null)
  })
})
