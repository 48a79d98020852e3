import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { urlOf } from '../../helper/address.js'
import { ExternalClient } from './external-client.js'
import { runRelay } from './programs.js'
import { startCaddy } from './proxies.js'
import { FURTHER_ADDRESSES, proxySuite } from './proxy-suite.js'
import { subscribe } from './subscribers.js'

t.test('Caddy', (t) => proxySuite(t, startCaddy, { keepsSockets: false, idleTimeoutS: 0 }))

t.test('clients behind Caddy reach another relay while one accepts connections and does not respond', async (t) => {
  t.testdir()
  const silent = createServer(() => undefined).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { address } = await runRelay(t, {})
  const relays = [new URL(urlOf(silent)).host, address]
  const external = new ExternalClient(await startCaddy(t, { gateways: [address], relays }))

  for (const from of FURTHER_ADDRESSES) {
    await subscribe(t, external, 'websocket', 'floor:7', { from })
    t.pass(`a client from ${from} is subscribed`)
  }
})
