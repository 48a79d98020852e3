import t from 'tap'
import { demoSettings } from '../../demo/backend/config.js'
import { gatewaySettings } from '../../src/gateway/settings.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import { publisherSettings } from '../../src/shared/publisher.js'
import { unknownSettings } from '../../src/shared/unknown-settings.js'

const MISSPELLED: readonly (readonly [name: string, meant: string])[] = [
  ['TRUST_PROXIES', 'TRUST_PROXY'],
  ['GATEWAY_PROT', 'GATEWAY_PORT'],
  ['GATEWAYPORT', 'GATEWAY_PORT'],
  ['gateway_port', 'GATEWAY_PORT'],
  ['GATEWAY-PORT', 'GATEWAY_PORT'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['API_SECRETS', 'API_SECRET'],
  ['API_SECRET_FLIE', 'API_SECRET_FILE'],
  ['REDIS_URI', 'REDIS_URL'],
  ['NODE_ENVS', 'NODE_ENV']
]
for (const [name, meant] of MISSPELLED) {
  t.test(`${name} resembles ${meant}`, async (t) => {
    t.same(unknownSettings(gatewaySettings, { [name]: 'x', PATH: '/bin' }), [{ variable: name, resembles: meant }])
  })
}

t.test('an empty variable resembles nothing', async (t) => {
  t.same(unknownSettings(gatewaySettings, { TRUST_PROXIES: '' }), [])
})

t.test('variables of the system and of other tools resemble no setting', async (t) => {
  const names = [
    ...['PATH', 'HOME', 'HOSTNAME', 'HOST', 'PORT', 'PWD', 'SHELL', 'TERM', 'TZ', 'LANG', 'USER', 'LOGNAME'],
    ...['NODE_OPTIONS', 'NODE_VERSION', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'npm_config_cache', 'INIT_CWD'],
    ...['GATEWAY_SERVICE_HOST', 'GATEWAY_SERVICE_PORT', 'GATEWAY_PORT_3000_TCP', 'RELAY_PORT_8100_TCP_ADDR'],
    ...['KUBERNETES_PORT', 'INVOCATION_ID', 'JOURNAL_STREAM', 'NOTIFY_SOCKET', 'CREDENTIALS_DIRECTORY']
  ]
  const environment = Object.fromEntries(names.map((name) => [name, 'x']))
  t.same(unknownSettings(gatewaySettings, environment), [])
  t.same(unknownSettings(relaySettings, environment), [])
})

t.test('no setting of one program resembles a setting of another, so that they can share a file', async (t) => {
  const tables = [gatewaySettings, relaySettings, demoSettings, publisherSettings]
  const names = tables.flatMap(Object.keys).flatMap((name) => [name, `${name}_FILE`])
  const environment = Object.fromEntries(names.map((name) => [name, 'x']))
  for (const table of [gatewaySettings, relaySettings]) t.same(unknownSettings(table, environment), [])
})
