import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { SettingsError } from '../../src/shared/env.js'
import { listenError } from '../../src/shared/listen-error.js'

t.test('an address that is not of this machine is explained by the setting of the host', async (t) => {
  const server = createServer().listen(0, '192.0.2.1')
  const [error] = await once(server, 'error')
  const explained = listenError(error, { host: 'GATEWAY_HOST', port: 'GATEWAY_PORT' })
  t.ok(explained instanceof SettingsError)
  t.match(explained, { errors: [/^GATEWAY_HOST must be an address of this machine.*EADDRNOTAVAIL/] })
})
