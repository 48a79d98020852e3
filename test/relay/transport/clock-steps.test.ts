import t from 'tap'
import { send } from '../../helper/http.js'
import { RawClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY } from '../../helper/relay-rules.js'

const HOUR_MS = 3_600_000

t.test('connection_rate_limit accepts clients after a second although the system clock was set back', async (t) => {
  // A fixed clock, so that the rate limit does not depend on the speed of the machine.
  const clock = { wallMs: Date.now(), monotonicMs: 5000 }
  const { url } = await startRelay(t, { client: { connection_rate_limit: 2 } }, undefined, {
    nowMs: () => clock.wallMs,
    monotonicMs: () => clock.monotonicMs
  })
  const handshake = (): Promise<number> => {
    const { ws } = new RawClient(url)
    t.teardown(() => ws.terminate())
    return new Promise((resolve) => {
      ws.once('open', () => resolve(101))
      ws.once('unexpected-response', (_, { statusCode = 0 }) => resolve(statusCode))
    })
  }
  t.equal(await handshake(), 101)
  t.equal(await handshake(), 101)
  clock.wallMs -= HOUR_MS
  t.equal(await handshake(), 503)
  clock.monotonicMs += 1000
  t.equal(await handshake(), 101)
  t.equal(await handshake(), 101)
  clock.wallMs += 2 * HOUR_MS
  t.equal(await handshake(), 503, 'a step forward fills nothing')
})

t.test("a step of the system clock does not lock operators out of the operators' page", async (t) => {
  const edge = await startRelay(t, undefined, { RELAY_ADMIN_PASSWORD: 'correct horse battery' })
  const signIn = async (password: string): Promise<number> => {
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    const message = { method: 'POST', headers, body: JSON.stringify({ password }) }
    return (await send(edge.url, '/admin/api/sign-in', message)).status
  }
  for (let attempt = 0; attempt < 5; attempt++) await signIn('wrong')
  t.equal(await signIn('correct horse battery'), 429)
  edge.step(HOUR_MS)
  t.equal(await signIn('correct horse battery'), 429, 'a step forward does not end the wait')
  edge.step(-2 * HOUR_MS)
  edge.advance(15 * 60_000)

  t.not(await signIn('correct horse battery'), 429, 'a step back does not lengthen it')
})

t.test('history_ttl ends although the system clock was set back', async (t) => {
  const edge = await startRelay(t)
  await edge.publish('floor:7', 1)
  edge.step(-HOUR_MS)
  edge.advance(60_000)
  const { body } = await edge.api('history', { channel: 'floor:7', limit: 10 }, { headers: { 'x-api-key': API_KEY } })

  t.same(JSON.parse(body).result.publications ?? [], [])
})
