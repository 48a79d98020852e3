import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { relayConfig } from '../../src/relay/config/config.js'

const SECRET = '0123456789abcdef'.repeat(4)

const parse = (file: string) =>
  relayConfig({ RELAY_CONFIG: 'config.json', REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET }, () => file)

t.test('the relay rejects the file of Centrifugo on the migration page and accepts the translated one', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/how-to/migrate-from-centrifugo.md'), 'utf8')
  const [before = '', after = ''] = [...page.matchAll(/```json\n([^`]*)```/g)].map(([, json = '']) => json)
  t.throws(() => parse(before), /client\.proxy .*subscribe_proxy_enabled /s)
  t.same([...parse(after).channels.namespaces.keys()], ['floor', 'chat'])
})
