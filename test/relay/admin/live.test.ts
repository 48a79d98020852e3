import t from 'tap'
import type { ChannelDetail, ChannelRow, ConnectionRow, Page } from '../../../src/relay/admin/contract.js'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'

t.test('the live stream', async (t) => {
  const relay = await startRelay(t, undefined, { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const one = await operator(relay)

  t.test('has figures that move when traffic moves', async (t) => {
    const live = await one.live(t)
    t.equal(live.status, 200)
    t.same(await live.next('history'), [])
    const client = await connectedClient(t, relay.url)
    await client.ask({ id: 2, subscribe: { channel: 'floor:1' } })
    const moved = live.next('frame', ({ nodes }) => (nodes[0]?.deliveriesPerSecond ?? 0) > 0)
    await relay.publish('floor:1', { type: 'position-batch', data: [] })
    const { nodes } = await moved
    t.match(nodes, [{ name: 'relay', connections: 1, subscriptions: 1, channels: 1 }])
    t.ok((nodes[0]?.publishesPerSecond ?? 0) > 0)
    t.ok((nodes[0]?.bytesPerSecond ?? 0) > 0)
    t.ok((nodes[0]?.memoryBytes ?? 0) > 0)
    const rows = await one.read<Page<ChannelRow>>('channels')
    t.match(rows, { total: 1, rows: [{ name: 'floor:1', subscribers: 1, historyLength: 1 }] })
    const connections = await one.read<Page<ConnectionRow>>('connections')
    t.match(connections, {
      total: 1,
      rows: [{ user: '42', address: '127.0.0.1', transport: 'websocket', channels: 1 }]
    })
    const detail = await one.read<ChannelDetail>('channel?name=floor:1')
    t.match(detail, { namespace: 'floor', publications: [{ offset: 1 }] })
    t.equal((await one.get('config')).status, 200)
  })
})
