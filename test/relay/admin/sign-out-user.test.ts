import t from 'tap'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { connectedClient, openClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD }
const FILE = { client: { user_tokens_invalidate: { enabled: true } } }

t.test('an operator signs a user out everywhere', async (t) => {
  const relay = await startRelay(t, FILE, ON)
  const token = relayToken({ sub: 'ada' })
  const client = await connectedClient(t, relay.url, 'ada')
  const here = await operator(relay)
  t.equal((await here.post('sign-out-user', { user: '' })).status, 400)
  t.equal((await here.post('sign-out-user', { user: 'ada', more: 1 })).status, 400)
  t.equal((await here.post('sign-out-user', { user: 'ada' })).status, 204)
  t.match(await client.closed, /^3005 /)
  const again = await openClient(t, relay.url)
  t.match(await again.request({ id: 1, connect: { token } }), { error: { code: 109 } })
})

t.test('signing out everywhere is rejected unless it is enabled', async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const response = await (await operator(relay)).post('sign-out-user', { user: 'ada' })
  t.equal(response.status, 409)
})
