import t from 'tap'
import { send } from '../../helper/http.js'
import { openClient, RawClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { API_KEY } from '../../helper/relay-rules.js'

const HOUR_MS = 3_600_000

t.test('connection_rate_limit lets clients in after a second although the system clock was set back', async (t) => {
  const edge = await startRelay(t, { client: { connection_rate_limit: 2 } })
  await openClient(t, edge.url)
  await openClient(t, edge.url)
  edge.step(-HOUR_MS)
  const { ws } = new RawClient(edge.url)
  const status = await new Promise((resolve) =>
    ws.once('unexpected-response', (_, { statusCode }) => resolve(statusCode))
  )
  t.equal(status, 503)
  edge.pass(1000)

  await openClient(t, edge.url)
  t.pass('the next client is let in')
})

t.test('a step of the system clock does not lock operators out of the admin page', async (t) => {
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
  edge.pass(15 * 60_000)

  t.not(await signIn('correct horse battery'), 429, 'a step back does not lengthen it')
})

t.test('history_ttl ends although the system clock was set back', async (t) => {
  const edge = await startRelay(t)
  await edge.publish('floor:7', 1)
  edge.step(-HOUR_MS)
  edge.pass(60_000)
  const { body } = await edge.api('history', { channel: 'floor:7', limit: 10 }, { headers: { 'x-api-key': API_KEY } })

  t.same(JSON.parse(body).result.publications ?? [], [])
})
