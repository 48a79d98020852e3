import t from 'tap'
import { DISCONNECT_SHUTDOWN } from '../../../../src/relay/core/codes.js'
import { ClusterWithGaps } from '../../../helper/cluster-with-gaps.js'
import { coreRelay } from '../../../helper/relay-core.js'

t.test('after missed commands, the clients of that time are closed at 500 per second', async (t) => {
  const cluster = new ClusterWithGaps()
  const { connected, relay, advance } = coreRelay({ client: { ping_interval: '10000000s' } }, { cluster })
  const clients = await Promise.all(Array.from({ length: 600 }, (_, index) => connected(String(index))))
  cluster.missedCommands()
  t.equal(relay.stats().clients, 600, 'none is closed at once')
  await advance(500)
  t.equal(relay.stats().clients, 350)
  await advance(200)
  t.equal(relay.stats().clients, 250)
  const later = await connected('later')
  cluster.missedCommands()
  const afterSecondGap = await connected('after the second gap')
  await advance(1000)

  t.same([...new Set(clients.map(({ closed }) => closed))], ['3010 insufficient state'])
  t.equal(later.closed, '3010 insufficient state')
  t.equal(afterSecondGap.closed, null)
})

t.test('commands that are missed again and again do not delay the closing of clients', async (t) => {
  const cluster = new ClusterWithGaps()
  const { connected, relay, clock } = coreRelay({ client: { ping_interval: '10000000s' } }, { cluster })
  await Promise.all(Array.from({ length: 300 }, (_, index) => connected(String(index))))
  for (let gaps = 0; gaps < 5; gaps++) {
    cluster.missedCommands()
    clock.nowMs += 100
  }
  relay.tick()

  t.equal(relay.stats().clients, 50, '250 clients are closed in half a second')
})

t.test('clients that disconnect themselves do not slow down the closing of the others', async (t) => {
  const cluster = new ClusterWithGaps()
  const { connected, relay, advance } = coreRelay({ client: { ping_interval: '10000000s' } }, { cluster })
  const clients = await Promise.all(Array.from({ length: 300 }, (_, index) => connected(String(index))))
  cluster.missedCommands()
  for (const { client } of clients.slice(100)) client.connectionLost()
  t.equal(relay.stats().clients, 100)
  await advance(200)

  t.equal(relay.stats().clients, 0)
})

t.test('a relay that ends closes no more connections at a time than it was told to', async (t) => {
  const { connected, relay } = coreRelay()
  await Promise.all(Array.from({ length: 5 }, (_, index) => connected(String(index))))

  t.equal(relay.closeClients(2, DISCONNECT_SHUTDOWN), 3)
  t.equal(relay.stats().clients, 3)
  t.equal(relay.closeClients(4, DISCONNECT_SHUTDOWN), 0)
})
