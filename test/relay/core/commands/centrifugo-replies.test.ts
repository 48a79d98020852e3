import t from 'tap'
import { runJson, runProtobuf, withoutDefaults } from '../../../helper/both-codecs.js'
import type { Json } from '../../../helper/raw-client.js'
import { coreRelay, type TestRelay } from '../../../helper/relay-core.js'
import type { ConfigFile } from '../../../helper/relay-rules.js'
import type { ServerMessage } from '../../../helper/server-message.js'

// Replies of Centrifugo 6.9.6 that clients of both codecs must receive here too.

const FILE: ConfigFile = {
  channel: {
    namespaces: [
      {
        name: 'open',
        allow_subscribe_for_client: true,
        allow_history_for_client: true,
        history_size: 10,
        history_ttl: '60s',
        force_recovery: true
      },
      { name: 'plain', allow_subscribe_for_client: true },
      {
        name: 'asked',
        allow_subscribe_for_client: true,
        history_size: 10,
        history_ttl: '60s',
        allow_recovery: true,
        allow_tags_filter: true
      },
      {
        name: 'patched',
        allow_subscribe_for_client: true,
        history_size: 10,
        history_ttl: '60s',
        force_recovery: true,
        allow_tags_filter: true,
        allowed_delta_types: ['fossil']
      },
      {
        name: 'cached',
        allow_subscribe_for_client: true,
        history_size: 10,
        history_ttl: '60s',
        force_recovery: true,
        force_recovery_mode: 'cache',
        auto_cache_recover: true
      },
      { name: 'map', allow_subscribe_for_client: true, subscription_type: 'map', map: { mode: 'persistent' } },
      {
        name: 'short',
        allow_subscribe_for_client: true,
        subscription_type: 'map',
        map: { mode: 'ephemeral', key_ttl: '60s' }
      },
      { name: 'named', allow_subscribe_for_client: true, channel_regex: '^[a-z]+$' },
      { name: 'room', allow_subscribe_for_client: true, allow_user_limited_channels: true },
      { name: 'bytes', allow_subscribe_for_client: true, publication_data_format: 'binary' },
      { name: 'closed' }
    ]
  }
}

/** Without users, `room` and the others are for anonymous clients only if they allow it. */
const ANONYMOUS: ConfigFile = {
  client: { allow_anonymous_connect_without_token: true },
  channel: {
    namespaces: [
      { name: 'open', allow_subscribe_for_client: true },
      { name: 'public', allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true }
    ]
  }
}

const INSECURE: ConfigFile = { client: { insecure: true }, channel: { namespaces: [{ name: 'closed' }] } }

type Token = TestRelay['token']

interface Case {
  readonly title: string
  readonly file?: ConfigFile
  /** The frames that the client sends, each with one or more commands. */
  readonly frames: (token: Token, nowSeconds: number) => readonly (readonly Json[])[]
  /** All replies, in order. */
  readonly replies?: readonly unknown[]
  readonly closed?: string
}

const connect = (token: Token, more: Json = {}, claims: Json = {}): Json => ({
  id: 1,
  connect: { token: token({ sub: '42', ...claims }), ...more }
})

const connected = (subs?: Json, expires = true): Json => ({
  id: 1,
  connect: { client: String, version: 'test', ...(expires && { expires }), ...(subs && { subs }) }
})

const POSITION = { recoverable: true, positioned: true, epoch: 'epoch1', offset: 3 }
const history = (since: Json, reverse = true): Json => ({
  id: 2,
  history: { channel: 'open:1', limit: 10, reverse, since }
})
const offsets = (...offsets: number[]): Json => ({
  id: 2,
  history: {
    publications: offsets.map((offset) => ({ data: offset, offset })),
    epoch: 'epoch1',
    offset: 3
  }
})

const subscribe = (channel: string, more: Json = {}): Json => ({ id: 2, subscribe: { channel, ...more } })
const subscribed = (more: Json): Json => ({ id: 2, subscribe: more })
const rejected = (code: number, message: string): Json => ({ id: 2, error: { code, message } })
/** The positions of `open:1`, `asked:1`, `patched:1` and `cached:1` have these epochs. */
const at = (epoch: number, offset: number): Json => ({ epoch: `epoch${epoch}`, offset })
/** Matches publications with a tag, which no publication here has. */
const TAGGED = { key: 'k', cmp: 'ex' }

const CASES: readonly Case[] = [
  {
    title: 'connect with an empty channel in the token skips it',
    frames: (token) => [[connect(token, {}, { channels: ['', 'plain:1'] })]],
    replies: [connected({ 'plain:1': {} })]
  },
  {
    title: 'connect with null claims has none of them',
    frames: (token) => [[connect(token, {}, { channel: null, info: null, meta: null, subs: null })]],
    replies: [connected()]
  },
  {
    title: 'connect with null in the subs of the token subscribes without options',
    frames: (token) => [
      [connect(token, {}, { subs: { 'plain:1': null, 'plain:2': { override: { presence: {}, join_leave: null } } } })]
    ],
    replies: [connected({ 'plain:1': {}, 'plain:2': {} })]
  },
  {
    title: 'subscribe with null claims has none of them',
    frames: (token) => [
      [connect(token)],
      [
        subscribe('closed:1', {
          token: token({ sub: '42', channel: 'closed:1', client: null, info: null, override: null })
        })
      ]
    ],
    replies: [connected(), subscribed({ expires: true, ttl: 3600 })]
  },
  {
    title: 'subscribe with recover recovers nothing without recoverable',
    frames: (token) => [[connect(token)], [subscribe('asked:1', { recover: true, ...at(2, 1) })]],
    replies: [connected(), subscribed({ was_recovering: true })]
  },
  {
    title: 'subscribe with recover and recoverable recovers',
    frames: (token) => [[connect(token)], [subscribe('asked:1', { recover: true, recoverable: true, ...at(2, 2) })]],
    replies: [
      connected(),
      subscribed({
        recoverable: true,
        positioned: true,
        recovered: true,
        was_recovering: true,
        ...at(2, 2),
        publications: [{ data: 3, offset: 3 }]
      })
    ]
  },
  {
    title: 'connect with subs recovers nothing without force_recovery',
    frames: (token) => [[connect(token, { subs: { 'asked:1': { recover: true, recoverable: true, ...at(2, 1) } } })]],
    replies: [connected({ 'asked:1': { was_recovering: true } })]
  },
  {
    title: 'a recovery from the beginning does not repeat the epoch',
    frames: (token) => [[connect(token)], [subscribe('open:1', { recover: true, epoch: 'epoch1' })]],
    replies: [
      connected(),
      subscribed({
        recoverable: true,
        positioned: true,
        recovered: true,
        was_recovering: true,
        epoch: 'epoch1',
        publications: [1, 2, 3].map((offset) => ({ data: offset, offset }))
      })
    ]
  },
  {
    title: 'a recovery with a tag filter is answered with the requested offset',
    frames: (token) => [[connect(token)], [subscribe('patched:1', { recover: true, tf: TAGGED, ...at(3, 1) })]],
    replies: [
      connected(),
      subscribed({ recoverable: true, positioned: true, recovered: true, was_recovering: true, ...at(3, 1) })
    ]
  },
  {
    title: 'an automatic recovery of the newest publication was recovering',
    frames: (token) => [[connect(token)], [subscribe('cached:1')]],
    replies: [
      connected(),
      subscribed({
        recoverable: true,
        positioned: true,
        recovered: true,
        was_recovering: true,
        epoch: 'epoch4',
        publications: [{ data: 3, offset: 3 }]
      })
    ]
  },
  {
    title: 'a tag filter together with delta is accepted where deltas are not allowed',
    frames: (token) => [[connect(token)], [subscribe('asked:1', { tf: TAGGED, delta: 'fossil' })]],
    replies: [connected(), subscribed({})]
  },
  {
    title: 'phase 0 of a map without a position is unrecoverable',
    frames: (token) => [[connect(token)], [subscribe('map:1', { type: 1 })]],
    replies: [connected(), rejected(112, 'unrecoverable position')]
  },
  {
    title: 'phase 0 of an ephemeral map is unrecoverable',
    frames: (token) => [[connect(token)], [subscribe('short:1', { type: 1 })]],
    replies: [connected(), rejected(112, 'unrecoverable position')]
  },
  {
    title: 'phase 0 of a map with a cursor that the client did not receive is not permitted',
    frames: (token) => [[connect(token)], [subscribe('map:1', { type: 1, cursor: 'a' })]],
    replies: [connected(), rejected(103, 'permission denied')]
  },
  {
    title: 'connect with subs subscribes to channels that the client may subscribe to',
    frames: (token) => [[connect(token, { subs: { 'open:1': {}, 'plain:1': {}, 'named:abc': {} } })]],
    replies: [connected({ 'open:1': POSITION, 'plain:1': {}, 'named:abc': {} })]
  },
  {
    title: 'connect with subs recovers from the given position',
    frames: (token) => [[connect(token, { subs: { 'open:1': { recover: true, epoch: 'epoch1', offset: 2 } } })]],
    replies: [
      connected({
        'open:1': {
          ...POSITION,
          offset: 2,
          recovered: true,
          was_recovering: true,
          publications: [{ data: 3, offset: 3 }]
        }
      })
    ]
  },
  {
    title: 'connect with subs skips channels that need a token, that are closed, and that have an invalid name',
    frames: (token) => [
      [
        connect(token, {
          subs: {
            '$open:1': {},
            'closed:1': {},
            bare: {},
            'named:1': {},
            'open:é': {},
            [`open:${'x'.repeat(251)}`]: {}
          }
        })
      ]
    ],
    replies: [connected()]
  },
  {
    title: 'connect with subs ignores subscription tokens in them',
    frames: (token) => [
      [connect(token, { subs: { 'closed:1': { token: token({ sub: '42', channel: 'closed:1' }) } } })]
    ],
    replies: [connected()]
  },
  {
    title: 'connect with subs subscribes to user-limited channels of the user only',
    frames: (token) => [[connect(token, { subs: { 'room:a#41,42': {}, 'room:b#41': {}, 'room:c': {} } })]],
    replies: [connected({ 'room:a#41,42': {}, 'room:c': {} })]
  },
  {
    title: 'connect with subs keeps the options that the token has for a channel',
    frames: (token) => [
      [connect(token, { subs: { 'closed:1': {}, 'plain:1': {} } }, { subs: { 'closed:1': { data: { a: 1 } } } })]
    ],
    replies: [connected({ 'closed:1': { data: { a: 1 } }, 'plain:1': {} })]
  },
  {
    title: 'connect with subs of an unknown namespace is a bad request',
    frames: (token) => [[connect(token, { subs: { 'open:1': {}, 'nowhere:1': {} } })]],
    closed: '3501 bad request'
  },
  {
    title: 'connect with more subs than channel_limit is closed',
    file: { ...FILE, client: { channel_limit: 2 } },
    frames: (token) => [[connect(token, { subs: { 'plain:1': {}, 'plain:2': {}, 'plain:3': {} } })]],
    closed: '3505 channel limit'
  },
  {
    title: 'connect with as many permitted subs as channel_limit succeeds',
    file: { ...FILE, client: { channel_limit: 2 } },
    frames: (token) => [[connect(token, { subs: { 'plain:1': {}, 'plain:2': {}, 'closed:3': {} } })]],
    replies: [connected({ 'plain:1': {}, 'plain:2': {} })]
  },
  {
    title: 'connect with subs of an anonymous client subscribes to channels for anonymous clients',
    file: ANONYMOUS,
    frames: () => [[{ id: 1, connect: { subs: { 'open:1': {}, 'public:1': {} } } }]],
    replies: [connected({ 'public:1': {} }, false)]
  },
  {
    title: 'connect with subs in insecure mode subscribes to any channel',
    file: INSECURE,
    frames: () => [[{ id: 1, connect: { subs: { 'closed:1': {} } } }]],
    replies: [connected({ 'closed:1': {} }, false)]
  },
  {
    title: 'subscribe to a channel of connect.subs is answered with already subscribed',
    frames: (token) => [[connect(token, { subs: { 'plain:1': {} } })], [{ id: 2, subscribe: { channel: 'plain:1' } }]],
    replies: [connected({ 'plain:1': {} }), { id: 2, error: { code: 105, message: 'already subscribed' } }]
  },
  {
    title: 'connect with an expire_at in the past is answered with expired',
    frames: (token, now) => [[connect(token, {}, { expire_at: now - 1 })]],
    replies: [{ id: 1, error: { code: 110, message: 'expired' } }]
  },
  {
    title: 'connect in insecure mode never expires, also with an expire_at in the past',
    file: INSECURE,
    frames: (token, now) => [[connect(token, {}, { expire_at: now - 1 })]],
    replies: [connected(undefined, false)]
  },
  {
    title: 'connect in insecure mode with a token that will expire never expires',
    file: INSECURE,
    frames: (token) => [[{ id: 1, connect: { token: token({ sub: '42' }, 60) } }]],
    replies: [connected(undefined, false)]
  },
  {
    title: 'connect with an expire_at of zero never expires',
    frames: (token) => [[connect(token, {}, { expire_at: 0 })]],
    replies: [connected(undefined, false)]
  },
  {
    title: 'refresh with an expire_at in the past is answered with expired',
    frames: (token, now) => [
      [connect(token)],
      [{ id: 2, refresh: { token: token({ sub: '42', expire_at: now - 1 }) } }]
    ],
    replies: [connected(), { id: 2, error: { code: 110, message: 'expired' } }]
  },
  {
    title: 'subscribe with an expire_at in the past is answered with expired',
    frames: (token, now) => [
      [connect(token)],
      [
        {
          id: 2,
          subscribe: { channel: 'closed:1', token: token({ sub: '42', channel: 'closed:1', expire_at: now - 1 }) }
        }
      ]
    ],
    replies: [connected(), { id: 2, error: { code: 110, message: 'expired' } }]
  },
  {
    title: 'sub_refresh with an expire_at in the past closes the connection',
    frames: (token, now) => [
      [connect(token), { id: 2, subscribe: { channel: 'plain:1' } }],
      [
        {
          id: 3,
          sub_refresh: { channel: 'plain:1', token: token({ sub: '42', channel: 'plain:1', expire_at: now - 1 }) }
        }
      ]
    ],
    replies: [connected(), { id: 2, subscribe: {} }],
    closed: '3006 subscription expired'
  },
  {
    title: 'sub_refresh of a subscription without expiry is accepted',
    frames: (token) => [
      [connect(token), { id: 2, subscribe: { channel: 'plain:1' } }],
      [{ id: 3, sub_refresh: { channel: 'plain:1', token: token({ sub: '42', channel: 'plain:1' }, 60) } }]
    ],
    replies: [connected(), { id: 2, subscribe: {} }, { id: 3, sub_refresh: { expires: true, ttl: 60 } }]
  },
  {
    title: 'sub_refresh with a token for another user closes the connection',
    frames: (token) => [
      [connect(token), { id: 2, subscribe: { channel: 'plain:1' } }],
      [{ id: 3, sub_refresh: { channel: 'plain:1', token: token({ sub: '43', channel: 'plain:1' }) } }]
    ],
    replies: [connected(), { id: 2, subscribe: {} }],
    closed: '3500 invalid token'
  },
  {
    title: 'sub_refresh of a server-side subscription is a bad request',
    frames: (token) => [
      [connect(token, { subs: { 'plain:1': {} } })],
      [{ id: 2, sub_refresh: { channel: 'plain:1', token: token({ sub: '42', channel: 'plain:1' }) } }]
    ],
    replies: [connected({ 'plain:1': {} })],
    closed: '3501 bad request'
  },
  {
    title: 'history in reverse from beyond the end has no publications',
    frames: (token) => [[connect(token)], [history({ offset: 5, epoch: 'epoch1' })]],
    replies: [connected(), offsets()]
  },
  {
    title: 'history in reverse from just after the end has all publications',
    frames: (token) => [[connect(token)], [history({ offset: 4, epoch: 'epoch1' })]],
    replies: [connected(), offsets(3, 2, 1)]
  },
  {
    title: 'history in reverse from the end has the publications before it',
    frames: (token) => [[connect(token)], [history({ offset: 3, epoch: 'epoch1' })]],
    replies: [connected(), offsets(2, 1)]
  },
  {
    title: 'history from beyond the end has no publications',
    frames: (token) => [[connect(token)], [history({ offset: 5, epoch: 'epoch1' }, false)]],
    replies: [connected(), offsets()]
  },
  {
    title: 'frames after a failed connect are ignored',
    frames: (token) => [
      [connect(token, {}, { channels: ['nowhere:1'] }), { id: 2, subscribe: { channel: 'plain:1' } }],
      [{ id: 3, subscribe: { channel: 'plain:1' } }],
      [connect(token)],
      [{}]
    ],
    replies: [{ id: 1, error: { code: 102, message: 'unknown channel' } }]
  },
  {
    title: 'frames before a connect are a bad request',
    frames: () => [[{ id: 3, subscribe: { channel: 'plain:1' } }]],
    closed: '3501 bad request'
  }
]

for (const { title, file = FILE, frames, replies = [], closed = null } of CASES) {
  for (const [codec, run] of [
    ['JSON', runJson],
    ['protobuf', runProtobuf]
  ] as const) {
    t.test(`${title} (${codec})`, async (t) => {
      const relay = coreRelay(file)
      for (const channel of ['open:1', 'asked:1', 'patched:1', 'cached:1'])
        for (const data of [1, 2, 3]) relay.publish(channel, data)
      const outcome = await run(relay, frames(relay.token, relay.clock.nowMs / 1000))

      t.equal(outcome.closed, closed)
      const expected = withoutDefaults(replies)
      t.match(outcome.replies, expected)
      // `match` ignores what is not expected.
      t.same(exactParts(outcome.replies), exactParts(expected))
    })
  }
}

/** The parts of replies that must not have anything more than expected. */
const exactParts = (replies: unknown): unknown =>
  (replies as readonly ServerMessage[]).map(({ id, connect, subscribe, history }) => [
    id,
    connect?.expires,
    connect?.subs,
    subscribe,
    history
  ])
