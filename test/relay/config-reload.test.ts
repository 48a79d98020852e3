import t from 'tap'
import { reloadConfigFile } from '../../src/relay/config/reload.js'
import { configWith, SECRETS } from './config-fixture.js'

const environment = { ...SECRETS, RELAY_CONFIG: '/etc/relay.json' }
const reload = (before: object, after: unknown) =>
  reloadConfigFile(configWith(before), environment, () => (typeof after === 'string' ? after : JSON.stringify(after)))

t.test('reloading the configuration file', async (t) => {
  t.test('a reload applies the new content of the file', async (t) => {
    const result = reload({}, { client: { channel_limit: 7 }, channel: { namespaces: [{ name: 'room' }] } })

    t.match(result, { ok: true, needsRestart: [], config: { client: { channelLimit: 7 } } })
    t.same(result.ok && [...result.config.channels.namespaces.keys()], ['room'])
  })

  t.test('a reload keeps options that need a restart, and lists them', async (t) => {
    const result = reload(
      { http_server: { port: 8101 } },
      { http_server: { port: 8102 }, engine: { type: 'redis', redis: { address: 'redis://cache' } } }
    )

    t.match(result, {
      ok: true,
      needsRestart: ['http_server.port', 'engine.type'],
      config: { listen: { port: 8101 }, engine: { kind: 'memory' } }
    })
  })

  for (const [file, error] of [
    ['{', 'RELAY_CONFIG: /etc/relay.json is not valid JSON: line 1, column 2'],
    [{ client: { channel_limit: 'x' } }, 'RELAY_CONFIG: client.channel_limit must be a whole number from 1 to 1000000']
  ] as const) {
    t.test(`a reload of an invalid file is rejected with: ${error}`, async (t) => {
      t.same(reload({}, file), { ok: false, errors: [error] })
    })
  }

  t.test('a reload of a missing file is rejected', async (t) => {
    const readFile = (): string => {
      throw Object.assign(new Error('gone'), { code: 'ENOENT' })
    }

    t.same(reloadConfigFile(configWith({}), environment, readFile), {
      ok: false,
      errors: ['RELAY_CONFIG must name a readable file (ENOENT): /etc/relay.json']
    })
  })
})
