import { once } from 'node:events'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { eventually } from '../../helper/eventually.js'
import { detailsOf } from '../../helper/http.js'
import { openClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import { startRelay } from '../../helper/relay.js'
import { relayToken } from '../../helper/relay-rules.js'
import { APP, APP_HOST, browserOf, signIn, startOidcGateway, startProvider } from '../oidc/fixture.js'
import { folderOf } from '../upstreams/upstreams-fixture.js'
import { startWebSocketBackend } from '../websockets/websocket-backend.js'
import { getWith, REVOCATION_ENV, type RevocableGateway, tokenFrom, withInternalApi } from './fixture.js'

/** The user in the tokens of the fixture's backend. */
const USER = 'operator-1'
const RELAY_KEY = 'a-relay-key-for-tests-0123456789-abcdef'

/** Gateways and relays that share a Redis, an identity provider, and a backend with WebSockets. */
const startEverything = async (t: Test) => {
  const redis = await startRedis(t)
  const provider = await startProvider(t)
  const backend = await startWebSocketBackend(t)
  const rows = [{ name: 'live', url: backend.url, paths: ['/live'], websocket: true }]
  const GATEWAY_UPSTREAMS = join(folderOf(t, { 'rows.json': JSON.stringify(rows) }), 'rows.json')
  const newRelay = () =>
    startRelay(
      t,
      { client: { user_tokens_invalidate: { enabled: true } } },
      { RELAY_ENGINE: 'redis', REDIS_URL: redis.url, REALTIME_API_KEY: RELAY_KEY }
    )
  const relay = await newRelay()
  const env = {
    ...REVOCATION_ENV,
    GATEWAY_UPSTREAMS,
    REDIS_URL: redis.url,
    RELAY_API_URL: `${relay.url}/api`,
    REALTIME_API_KEY: RELAY_KEY
  }
  const newGateway = async () =>
    withInternalApi(await startOidcGateway(t, { issuer: provider.url, env, redisTimeouts: PATIENT_TIMEOUTS }))
  return { redis, relay, newRelay, newGateway }
}

const openWebSocket = async ({ url }: RevocableGateway, cookie: string): Promise<WebSocket> => {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/live/x`, { headers: { cookie, host: APP_HOST } })
  await once(ws, 'open')
  return ws
}

/** A relay token that was issued some seconds ago. */
const relayTokenFrom = (secondsAgo: number, sub: string): string =>
  relayToken({ sub }, { nowMs: Date.now() - secondsAgo * 1000 })

/** The error code of a connect at the relay; null if it is accepted. */
const connectAt = async (t: Test, url: string, token: string) => {
  const client = await openClient(t, url)
  const { error }: { error?: { code: number } } = await client.request({ id: 1, connect: { token } })
  return { client, code: error?.code ?? null }
}

t.test('a user revoked at one gateway has no session at any gateway or relay', async (t) => {
  const { redis, relay, newRelay, newGateway } = await startEverything(t)
  const [one, two] = [await newGateway(), await newGateway()]
  const browser = browserOf(two)
  await signIn(browser, 'ada')
  const cookie = browser.cookieHeader(new URL(`${APP}/live/x`))
  const token = tokenFrom(5, { userId: USER })
  t.equal((await getWith(two, token)).status, 200)
  const [mine, other] = [await openWebSocket(two, cookie), await openWebSocket(two, `auth_token=${tokenFrom(5, {})}`)]
  const closed = once(mine, 'close')
  const connection = await connectAt(t, relay.url, relayTokenFrom(5, USER))
  t.equal(connection.code, null)

  t.equal((await one.revoke({ user: USER })).status, 200)

  await eventually(async () => (await getWith(two, token)).status === 401)
  t.same((await closed).map(String), ['4401', 'session ended'])
  t.equal(other.readyState, WebSocket.OPEN)
  t.match(await connection.client.closed, /^3005 /)
  t.equal((await connectAt(t, relay.url, relayTokenFrom(5, USER))).code, 109)
  t.equal((await connectAt(t, relay.url, relayTokenFrom(5, 'somebody-else'))).code, null)

  t.test('the provider session of a revoked user ends', async (t) => {
    for (let time = 0; time < 2; time++) await browser.request(`${APP}/api/zones`)
    t.same(browser.names(APP_HOST), [])
    t.equal(two.backend.requests.at(-1)?.headers.authorization, undefined)
  })

  t.test('gateways and relays that start later reject the older tokens', async (t) => {
    await two.gateway.app.close()
    t.equal((await getWith(await newGateway(), token)).status, 401)
    await relay.running.close()
    t.equal((await connectAt(t, (await newRelay()).url, relayTokenFrom(5, USER))).code, 109)
  })

  t.test(
    'without Redis and the relay a revocation is reported as incomplete, and completed for gateways',
    async (t) => {
      const third = await newGateway()
      const bob = tokenFrom(5, { userId: 'bob' })
      await redis.kill()
      const response = await one.revoke({ user: 'bob' })
      t.equal(response.code, 'REVOCATION_INCOMPLETE')
      t.same(
        detailsOf(response).map(({ path }) => path),
        ['/gateways', '/relay']
      )
      t.equal((await getWith(one, bob)).status, 401)
      t.equal((await getWith(third, bob)).status, 200)
      await redis.restart()
      await eventually(async () => (await getWith(third, bob)).status === 401)
    }
  )
})
