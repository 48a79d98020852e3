import t from 'tap'
import { configView } from '../../../src/relay/admin/config-view.js'
import type { ActiveConfig } from '../../../src/relay/admin/contract.js'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY, configOf, HMAC_SECRET } from '../../helper/relay-rules.js'

const SECRETS = {
  RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD,
  RELAY_ENGINE: 'redis',
  REDIS_URL: 'redis://user:the%20password%20of%20redis@redis.example:6379/3,rediss://:another@other.example:6380'
}
const FILE = {
  client: { subscription_token: { enabled: true, hmac_secret_key: 'the secret of subscription tokens' } },
  channel: { namespaces: [{ name: 'floor', channel_regex: '^[0-9]+$', history_size: 5, history_ttl: '10s' }] },
  rpc: {
    proxy: {
      endpoint: 'https://login:the-login@backend.example/rpc?key=the-query',
      http: { static_headers: { 'X-Key': 'the-header' }, signing_secret: 'the-signature' }
    },
    without_namespace: { proxy_enabled: true }
  }
}

t.test('the configuration view shows no secrets', async (t) => {
  const shown = JSON.stringify(configView(configOf(FILE, SECRETS)))
  for (const secret of [
    HMAC_SECRET,
    API_KEY,
    ADMIN_PASSWORD,
    'the secret of subscription tokens',
    'of%20redis',
    'user:',
    'another',
    'the-login',
    'the-query',
    'the-header',
    'the-signature'
  ]) {
    t.notMatch(shown, secret)
  }
  t.match(JSON.parse(shown), {
    api: { key: '(hidden)' },
    client: {
      token: { hmacSecret: '(hidden)' },
      subscriptionToken: { hmacSecret: '(hidden)' },
      pingIntervalMs: 25_000
    },
    adminPassword: '(hidden)',
    engine: { url: 'redis://redis.example:6379/3,rediss://other.example:6380' },
    channels: { namespaces: { floor: { channelRegex: '^[0-9]+$', historySize: 5 } } },
    rpc: { withoutNamespace: 'default' },
    proxies: {
      rpc: {
        default: {
          endpoint: 'https://backend.example/rpc?(hidden)',
          staticHeaders: ['authorization', 'x-key'],
          isSigned: true
        }
      }
    }
  })
})

t.test('the configuration view shows every option of a namespace', async (t) => {
  const config = configOf(FILE)
  const shown: ReadonlyMap<string, object> = new Map(Object.entries(configView(config).channels.namespaces))
  t.same(Object.keys(shown.get('floor') ?? {}).toSorted(), Object.keys(config.channels.withoutNamespace).toSorted())
})

t.test('the configuration view contains listed options only', async (t) => {
  const config = configOf(undefined, { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD })
  const { client, api } = config
  const grown = { ...config, token: 'SECRET', client: { ...client, more: 'SECRET' }, api: { ...api, more: 'SECRET' } }
  t.notMatch(JSON.stringify(configView(grown)), 'SECRET')
})

t.test('the configuration view shows the reloaded configuration', async (t) => {
  const on = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD }
  const relay = await startRelay(t, FILE, on)
  const one = await operator(relay)
  const before = await one.read<ActiveConfig>('config')
  t.match(before, { reloadedAt: null, config: { channels: { namespaces: { floor: { historySize: 5 } } } } })
  relay.running.configure(configOf({ channel: { namespaces: [{ name: 'other' }] } }, on))
  const { config, startedAt, reloadedAt } = await one.read<ActiveConfig>('config')
  t.match(config, { channels: { namespaces: { other: {} } } })
  t.notMatch(config, { channels: { namespaces: { floor: {} } } })
  t.equal(startedAt, before.startedAt)
  t.ok((reloadedAt ?? 0) >= startedAt)
})
