import t from 'tap'
import { channelStateRules } from '../../../src/relay/webhooks/channel-state-rules.js'
import { configWith, errorsOf } from '../config-fixture.js'

const PROXY = { proxy: { state: { endpoint: 'http://backend/state' } } }
const ENABLED = { presence: true, state_proxy_enabled: true }

const room = (options: object, channel: object = PROXY): object => ({
  channel: { ...channel, namespaces: [{ name: 'room', ...options }] }
})

const INVALID: readonly (readonly [name: string, file: object, error: RegExp])[] = [
  ['state_proxy_enabled without presence', room({ state_proxy_enabled: true }), /state_proxy_enabled needs presence$/],
  [
    'state_proxy_enabled without presence in channels without a namespace',
    { channel: { ...PROXY, without_namespace: { state_proxy_enabled: true } } },
    /channel\.without_namespace\.state_proxy_enabled needs presence$/
  ],
  [
    'state_proxy_enabled without an endpoint',
    room(ENABLED, {}),
    /channel\.proxy\.state\.endpoint is missing, and channel\.namespaces\[0\]\.state_proxy_enabled needs it$/
  ],
  [
    'an unknown proxy',
    room({ ...ENABLED, state_proxy_name: 'unknown' }),
    /channel\.namespaces\[0\]\.state_proxy_name must be default, or the name of one of proxies$/
  ],
  ['an unknown event', room({ ...ENABLED, state_events: ['left'] }), /channel\.namespaces\[0\]\.state_events/],
  ['an event twice', room({ ...ENABLED, state_events: ['vacated', 'vacated'] }), /state_events/],
  [
    'a delay that is not a duration',
    { engine: { redis: { channel_state: { vacated_event_delay: 'soon' } } } },
    /engine\.redis\.channel_state\.vacated_event_delay/
  ],
  ['an unknown option', { engine: { redis: { channel_state: { delay: '1s' } } } }, /channel_state\.delay/]
]

for (const [name, file, error] of INVALID) {
  t.test(`the relay does not start with ${name}`, async (t) => {
    const errors = errorsOf(() => configWith(file))
    t.equal(errors.length, 1)
    t.match(errors[0], error)
  })
}

t.test('options of webhooks have defaults', async (t) => {
  const { channels, vacatedDelayMs } = configWith(room(ENABLED))
  t.match(channels.namespaces.get('room'), { stateProxy: 'default', stateEvents: ['occupied', 'vacated'] })
  t.match(channels.withoutNamespace, { stateProxy: null })
  t.equal(vacatedDelayMs, 5000)
  t.equal(configWith({ engine: { redis: { channel_state: { vacated_event_delay: 0 } } } }).vacatedDelayMs, 5000)
})

t.test('a disabled state proxy may lack its endpoint, and presence', async (t) => {
  const file = room({ state_proxy_enabled: false, state_proxy_name: 'unknown', state_events: ['vacated'] }, {})
  t.equal(channelStateRules(configWith(file)), null, 'presence is not observed')
})

t.test('each namespace has its own proxy', async (t) => {
  const file = {
    channel: {
      ...PROXY,
      without_namespace: ENABLED,
      namespaces: [
        { name: 'room', ...ENABLED, state_proxy_name: 'one' },
        { name: 'plain', presence: true }
      ]
    },
    proxies: [{ name: 'one', endpoint: 'http://backend/one' }]
  }
  const rules = channelStateRules(configWith(file))
  t.same([...(rules?.proxies ?? [])].sort(), ['default', 'one'])
  t.same(
    ['room:1', '$room:1', 'plain:1', 'lobby', 'unknown:1'].map((channel) => rules?.proxyOf(channel)),
    ['one', 'one', null, 'default', null]
  )
})
