import t from 'tap'
import type { ChannelDetail, MapPage } from '../../../src/relay/admin/contract.js'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { startRelay } from '../../helper/relay.js'

const FILE = {
  channel: {
    namespaces: [
      { name: 'fleet', subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '60s' } },
      { name: 'chat' }
    ]
  }
}

t.test("the operators' page lists the entries of a map and removes one", async (t) => {
  const relay = await startRelay(t, FILE, { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const one = await operator(relay)
  const keys = Array.from({ length: 60 }, (_, index) => `k${String(index).padStart(2, '0')}`)
  for (const key of keys) await relay.api('map_publish', { channel: 'fleet:1', key, data: { key }, version: 7 })

  const first = await one.read<MapPage>('map?channel=fleet:1')
  t.match(first, { mode: 'recoverable', total: 60 })
  t.equal(first.rows.length, 50)
  const [row] = first.rows
  t.match(row, { key: 'k00', data: '{"key":"k00"}', version: 7, offset: 1, isTruncated: false })
  t.equal((row?.expiresAt ?? 0) - (row?.time ?? 0), 60_000)
  const second = await one.read<MapPage>(`map?channel=fleet:1&after=${first.next}`)
  t.same([...first.rows, ...second.rows].map(({ key }) => key).sort(), keys)
  t.equal(second.next, '')
  t.match(await one.read<ChannelDetail>('channel?name=fleet:1'), { isMap: true })

  t.equal((await one.post('map/remove', { channel: 'fleet:1', key: 'k07' })).status, 204)
  t.same((await one.read<MapPage>('map?channel=fleet:1&key=k07')).rows, [])
  t.match(await one.read<MapPage>('map?channel=fleet:1&key=k08'), { total: 59, rows: [{ key: 'k08' }] })

  t.equal((await one.post('map/remove', { channel: 'fleet:1', key: 'k07' })).status, 404)
  t.match(await one.post('map/remove', { channel: 'chat:1', key: 'k07' }), { status: 400, body: /REMOVAL_REJECTED/ })
  t.equal((await one.post('map/remove', { channel: 'fleet:1', key: '' })).status, 400)
  t.equal((await one.get('map?channel=chat:1')).status, 404)
  t.equal((await one.get('map?channel=nope:1')).status, 404)
  t.equal(
    (await one.post('map/remove', { channel: 'fleet:1', key: 'k08' }, { headers: { 'x-admin-csrf': '' } })).status,
    403
  )
})
