import { once } from 'node:events'
import { createServer } from 'node:net'
import t from 'tap'
import { SettingsError } from '../../src/shared/env.js'
import { listenError } from '../../src/shared/listen-error.js'

for (const [title, host, message] of [
  [
    'an address that is not of this machine',
    '192.0.2.1',
    /^GATEWAY_HOST must be an address of this machine.*EADDRNOTAVAIL/
  ],
  ['an unknown name', 'nowhere.invalid', /^GATEWAY_HOST must be .*nowhere\.invalid/]
] as const) {
  t.test(`${title} is explained by the setting of the host`, async (t) => {
    const server = createServer().listen(0, host)
    const [error] = await once(server, 'error')
    const explained = listenError(error, { host: 'GATEWAY_HOST', port: 'GATEWAY_PORT' })
    t.ok(explained instanceof SettingsError)
    t.match(explained, { errors: [message] })
  })
}
