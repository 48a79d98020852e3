import jwt from 'jsonwebtoken'
import t from 'tap'
import { RateLimitedLog } from '../../../src/relay/transport/rejections.js'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient, openClient } from '../../helper/raw-client.js'
import { type LogLine, recordedLog } from '../../helper/recorded-log.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { API_KEY, HMAC_SECRET, relayToken } from '../../helper/relay-rules.js'

/** The values of `relay_rejections_total` that are not zero, by kind and reason. */
const counted = async ({ url }: EdgeRelay): Promise<Record<string, number>> => {
  const { body } = await send(url, '/metrics')
  const series = body.matchAll(/^relay_rejections_total\{kind="(\w+)",reason="([\w-]+)"\} (\d+)$/gm)
  return Object.fromEntries(
    [...series]
      .filter(([, , , value]) => value !== '0')
      .map(([, kind, reason, value]) => [`${kind} ${reason}`, Number(value)])
  )
}

const rejectionLines = (lines: readonly LogLine[]): LogLine[] =>
  lines.filter(({ msg }) => String(msg).startsWith('rejected ')).map(({ level: _level, time: _time, ...rest }) => rest)

const ALLOWED = { RELAY_ALLOWED_ORIGINS: 'https://app.example.com' }

t.test('a rejected origin is logged with its address and counted', async (t) => {
  const { lines, log } = recordedLog()
  const edge = await startRelay(t, undefined, ALLOWED, { log })
  const origin = `https://evil.example.net/${'x'.repeat(1000)}`
  const { status } = await send(edge.url, '/connection/http_stream', {
    method: 'POST',
    headers: { origin },
    body: '{}'
  })

  t.equal(status, 403)
  t.same(rejectionLines(lines), [
    { reason: 'not-allowed', ip: '127.0.0.1', origin: origin.slice(0, 200), suppressed: 0, msg: 'rejected origin' }
  ])
  t.same(await counted(edge), { 'origin not-allowed': 1 })
})

t.test('a rejected token is logged with its reason, never with its text, and counted', async (t) => {
  const { lines, log } = recordedLog()
  const edge = await startRelay(t, undefined, {}, { log })
  const [header, payload] = relayToken({ sub: '42' }).split('.')
  const tokens: [reason: string, token: string][] = [
    ['bad-signature', `${header}.${payload}.${'A'.repeat(43)}`],
    ['malformed', 'nonsense'],
    ['expired', relayToken({ sub: '42' }, { nowMs: Date.now() - 7_200_000, lifetimeSeconds: 3600 })],
    ['no-user', relayToken({})],
    ['no-expiry', jwt.sign({ sub: '42' }, HMAC_SECRET)],
    ['missing', '']
  ]
  for (const [, token] of tokens) {
    const client = await openClient(t, edge.url)
    client.ws.send(JSON.stringify({ id: 1, connect: { token } }))
    await Promise.race([client.closed, client.next()])
  }

  t.same(
    rejectionLines(lines),
    tokens.map(([reason]) => ({ reason, ip: '127.0.0.1', suppressed: 0, msg: 'rejected token' }))
  )
  t.same(await counted(edge), Object.fromEntries(tokens.map(([reason]) => [`token ${reason}`, 1])))
  t.notMatch(JSON.stringify(lines), 'AAAAAAAA')
})

t.test(
  'a subscription token without a user, or of another user, client or channel, is logged and counted',
  async (t) => {
    const { lines, log } = recordedLog()
    const edge = await startRelay(t, undefined, {}, { log })
    for (const claims of [
      { sub: '42', channel: 'floor:8' },
      { sub: '43', channel: 'floor:7' },
      { channel: 'floor:7' },
      { sub: '42', channel: 'floor:7', client: 'another-client' }
    ]) {
      const client = await connectedClient(t, edge.url, '42')
      client.ws.send(JSON.stringify({ id: 2, subscribe: { channel: 'floor:7', token: relayToken(claims) } }))
      t.equal(await client.closed, '3500 invalid token')
    }

    t.same(
      rejectionLines(lines).map(({ reason }) => reason),
      ['other-channel', 'other-user', 'no-user', 'other-client']
    )
    t.same(await counted(edge), {
      'token other-channel': 1,
      'token other-user': 1,
      'token no-user': 1,
      'token other-client': 1
    })
  }
)

t.test('a rejected API key is logged with the address, never with the key, and counted', async (t) => {
  const { lines, log } = recordedLog()
  const edge = await startRelay(t, undefined, {}, { log })
  const call = async (headers: Record<string, string>): Promise<number> =>
    (await send(edge.url, '/api/info', { method: 'POST', body: '{}', headers })).status

  t.equal(await call({}), 401)
  t.equal(await call({ 'x-api-key': 'a wrong key' }), 401)
  t.equal(await call({ 'x-api-key': API_KEY }), 200)
  t.same(rejectionLines(lines), [
    { reason: 'missing', ip: '127.0.0.1', suppressed: 0, msg: 'rejected API key' },
    { reason: 'wrong', ip: '127.0.0.1', suppressed: 0, msg: 'rejected API key' }
  ])
  t.same(await counted(edge), { 'api_key missing': 1, 'api_key wrong': 1 })
  t.notMatch(JSON.stringify(lines), 'a wrong key')
})

t.test('a thousand rejections of one reason are one log line at once, and all of them are counted', async (t) => {
  const { lines, log } = recordedLog()
  const edge = await startRelay(t, undefined, {}, { log })
  for (let calls = 0; calls < 1000; calls += 100) {
    const wrong = { method: 'POST', body: '{}', headers: { 'x-api-key': 'x' } }
    await Promise.all(Array.from({ length: 100 }, () => send(edge.url, '/api/info', wrong)))
  }

  // A slow machine may need several periods for a thousand requests.
  const written = rejectionLines(lines)
  const suppressed = written.reduce((sum, line) => sum + Number(line.suppressed), 0)
  t.ok(written.length + suppressed <= 1000)
  t.ok(written.length < 100)
  t.same(await counted(edge), { 'api_key wrong': 1000 })
})

t.test('the number of suppressed lines is logged when a period ends, without another occurrence', async (t) => {
  const lines: object[] = []
  const write = (facts: object, message: string): void => void lines.push({ ...facts, message })
  const log = new RateLimitedLog({ warn: write, error: write }, 50)
  for (let count = 1; count <= 5; count++) log.warn('a', { count }, 'rejected')
  log.warn('b', {}, 'other')

  t.same(lines, [
    { count: 1, suppressed: 0, message: 'rejected' },
    { suppressed: 0, message: 'other' }
  ])
  await eventually(() => lines.length === 3)
  t.same(lines[2], { count: 5, suppressed: 3, message: 'rejected' })
})

t.test('a client that connects, subscribes and leaves causes no log line at the default level', async (t) => {
  const { lines, log } = recordedLog()
  const edge = await startRelay(t, undefined, {}, { log })
  const client = await connectedClient(t, edge.url)
  t.match(await client.request({ id: 2, subscribe: { channel: 'floor:1' } }), { subscribe: {} })
  client.ws.close()
  await eventually(() => edge.relay.clients.length === 0)

  t.same(lines, [])
})
