import t, { type Test } from 'tap'
import type { ClientOptions } from 'ws'
import { openClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { type ConfigFile, relayToken } from '../../helper/relay-rules.js'
import { firstMessage, UNIDIRECTIONAL_KINDS } from '../../helper/unidirectional.js'
import { configWith, errorsOf } from '../config-fixture.js'

const FILE: ConfigFile = {
  client: {
    user_id_http_header: 'X-User-Id',
    subscribe_to_user_personal_channel: { enabled: true, personal_channel_namespace: 'own' }
  },
  channel: { namespaces: [{ name: 'own' }] },
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_websocket: { enabled: true }
}

/** The users of the connections after a client has connected, or why it was closed. */
const connect = async (t: Test, file: ConfigFile, options: ClientOptions, token = '') => {
  const { url, relay } = await startRelay(t, file)
  const client = await openClient(t, url, options)
  client.send({ id: 1, connect: { token } })
  const outcome = await Promise.race([client.next(), client.closed])
  return typeof outcome === 'string' ? outcome : relay.clients.map(({ user }) => user)
}

/** A request with two values of the header. */
const twice: ClientOptions = {
  finishRequest: (request) => {
    request.setHeader('x-user-id', ['42', '43'])
    request.end()
  }
}

const from = (user: string): ClientOptions => ({ headers: { 'x-user-id': user } })

const cases: [title: string, options: ClientOptions, outcome: unknown, token?: string, file?: ConfigFile][] = [
  ['the header is the user', from('42'), ['42']],
  ['the header may be Unicode', from(Buffer.from('Zoë').toString('latin1')), ['Zoë']],
  ['a token wins over the header', from('42'), ['43'], relayToken({ sub: '43' })],
  ['an invalid token is not replaced by the header', from('42'), '3500 invalid token', 'x'],
  ['without the header a token is needed', {}, '3501 bad request'],
  ['an empty header is none', from(''), '3501 bad request'],
  ['a header that occurs twice is none', twice, '3501 bad request'],
  ['another header is not read', { headers: { 'x-user': '42' } }, '3501 bad request'],
  [
    'a client is anonymous if anonymous clients are allowed',
    from('42'),
    [''],
    '',
    { ...FILE, client: { user_id_http_header: 'X-User-Id', allow_anonymous_connect_without_token: true } }
  ],
  ['without the option the header is not read', from('42'), '3501 bad request', '', {}]
]
for (const [title, options, outcome, token, file = FILE] of cases) {
  t.test(`user_id_http_header: ${title}`, async (t) => {
    t.same(await connect(t, file, options, token), outcome)
  })
}

for (const [kind, open] of Object.entries(UNIDIRECTIONAL_KINDS)) {
  t.test(`user_id_http_header: ${kind} is connected as the user, with its personal channel`, async (t) => {
    const { url, relay } = await startRelay(t, FILE)
    const receiver = await open(t, url, {}, { 'x-user-id': '42' })

    t.match(await firstMessage(receiver), { connect: { subs: { 'own:#42': {} }, expires: undefined } })
    t.same(
      relay.clients.map(({ user }) => user),
      ['42']
    )
  })
}

t.test('user_id_http_header must be the name of a header', async (t) => {
  const errors = errorsOf(() => configWith({ client: { user_id_http_header: 'X User' } }))

  t.match(errors, [/client\.user_id_http_header must be the name of a header/])
})
