import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { relayConfig } from '../../src/relay/config/config.js'

const SECRET = '0123456789abcdef'.repeat(4)

interface Namespace {
  readonly name: string
  readonly subscribe_proxy_enabled?: boolean
}

const parse = (file: string) =>
  relayConfig(
    { NODE_ENV: 'test', RELAY_CONFIG: 'config.json', REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET },
    () => file
  )

t.test('the relay accepts the file of Centrifugo on the migration page, and its backend still decides', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/how-to/migrate-from-centrifugo.md'), 'utf8')
  const [file = ''] = [...page.matchAll(/```json\n([^`]*)```/g)].map(([, json = '']) => json)
  const { client, channels, proxies } = parse(file)
  t.equal(client.connectProxy, true)
  t.same([...channels.namespaces.keys()], ['floor', 'chat'])

  const isProxied = (each: Namespace): boolean => each.subscribe_proxy_enabled === true
  const proxied: readonly Namespace[] = JSON.parse(file).channel.namespaces.filter(isProxied)
  t.ok(proxied.length > 0)
  for (const { name } of proxied)
    t.match(
      channels.namespaces.get(name),
      { subscribeProxy: 'default', allowSubscribeForClient: false, allowSubscribeForAnonymous: false },
      `${name} stays protected`
    )
  t.match(proxies.events.subscribe.get('default'), { origin: 'http://backend:3001', path: '/subscribe' })
})
