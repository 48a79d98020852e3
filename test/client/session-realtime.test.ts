import t, { type Test } from 'tap'
import { createApiClient } from '../../src/client/api-client.js'
import { type ClientOptions, createClient } from '../../src/client/client.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { cookieJar } from '../helper/cookie-jar.js'
import { eventually } from '../helper/eventually.js'
import { FakeClock } from '../helper/fake-clock.js'
import { apiKey, startGateway } from '../helper/gateway.js'
import { CLIENT, nextEvent, online, socketAt, subscribed } from '../helper/realtime.js'
import { startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

const OPEN = {
  allow_subscribe_for_client: true,
  history_size: 10,
  history_ttl: '60s',
  force_recovery: true,
  force_positioning: true
}

/** A gateway, a relay, and a backend that signs in the user whose name is the password. */
const setUp = async (t: Test, options: ClientOptions['realtime'] = {}) => {
  const relay = await startRelay(t, { channel: { namespaces: [{ name: 'orders', ...OPEN }] } })
  const gateway = await startGateway(t, { hasAllRoutes: true })
  let rejects = false
  let acceptsVisitors = false
  let held: ((release: () => void) => void) | null = null
  gateway.backend.respond = ({ url, body, headers }, response) => {
    response.setHeader('content-type', 'application/json')
    const reply = (data: unknown) => response.end(JSON.stringify({ success: true, data }))
    if (url === '/api/auth/login') {
      const { password: userId } = JSON.parse(body)
      const token = createAppToken({ userId, role: 'user' }, apiKey, { format: 'jwt', lifetimeSeconds: 3600 })
      reply({ token, user: { userId, email: `${userId}@example.com`, permissions: [] }, expiresIn: 3600 })
    } else if (url !== '/api/negotiate') reply({})
    else if (rejects) response.writeHead(403).end('{"error":{"code":"LOCKED","message":"Locked"}}')
    else if (headers.authorization === undefined && !acceptsVisitors)
      response.writeHead(401).end('{"error":{"code":"UNAUTHENTICATED","message":"Sign in"}}')
    else {
      const [, claims] = String(headers.authorization).split('.')
      const userId = claims === undefined ? 'visitor' : JSON.parse(Buffer.from(claims, 'base64url').toString()).userId
      const accept = () => reply({ url: socketAt(relay.port), token: relayToken({ sub: userId }), expiresIn: 3600 })
      if (held === null) accept()
      else held(accept)
      held = null
    }
  }
  const jar = cookieJar()
  const page = { baseUrl: gateway.url, fetch: jar.fetch, cookies: () => jar.readable }
  const clock = new FakeClock(Date.now())
  const connects: string[] = []
  /** Records the users of connect commands. */
  class RecordingWebSocket extends CLIENT.websocket {
    override send(data: string): void {
      const [, token] = /"token":"[^".]*\.([^".]*)/.exec(data) ?? []
      if (token !== undefined) connects.push(JSON.parse(Buffer.from(token, 'base64url').toString()).sub)
      super.send(data)
    }
  }
  const client = createClient({
    ...page,
    clock,
    realtime: { client: { ...CLIENT, websocket: RecordingWebSocket }, ...options }
  })
  t.teardown(() => client.close())
  const otherTab = createApiClient(page)
  t.teardown(() => otherTab.close())
  return {
    ...client,
    client,
    clock,
    relay,
    connects,
    /** Resolves at the next negotiation, which waits until it is released. */
    hold: () =>
      new Promise<() => void>((resolve) => {
        held = resolve
      }),
    reject: (isRejected: boolean) => {
      rejects = isRejected
    },
    acceptVisitors: () => {
      acceptsVisitors = true
    },
    negotiations: () => gateway.backend.requests.filter(({ url }) => url === '/api/negotiate').length,
    users: () => [...relay.relay.clients].map(({ user }) => user),
    signIn: (password: string) => client.signIn({ email: 'a@example.com', password }),
    signInElsewhere: (password: string) => otherTab.signIn({ email: 'a@example.com', password })
  }
}

t.test('realtime and the session', async (t) => {
  t.test('a subscription of a visitor waits for the sign-in, and closes with the sign-out', async (t) => {
    const { realtime, relay, signIn, signOut, users, negotiations } = await setUp(t)
    const orders = realtime.subscribe('orders:42')
    t.equal(realtime.state, 'offline')
    t.equal(orders.state, 'subscribing')
    await t.rejects(realtime.rpc('a.method'), { name: 'RelayError', code: 90, message: 'not connected' })
    t.equal(negotiations(), 0, 'a visitor does not ask')

    await signIn('ada')
    await subscribed(orders)
    t.same(users(), ['ada'])
    await relay.publish('orders:42', 'for ada')
    await eventually(() => orders.latest !== null)
    const reset = nextEvent(realtime, 'reset')
    await signOut()
    await reset
    t.equal(realtime.state, 'offline')
    t.equal(orders.state, 'subscribing')
    t.equal(orders.latest, null)
    t.equal(orders.position, null)
    await eventually(() => users().length === 0)
  })

  t.test('the next user connects with an own token, and receives nothing of the previous one', async (t) => {
    const { realtime, relay, signIn, signOut, users } = await setUp(t)
    await signIn('ada')
    const orders = realtime.subscribe('orders:42')
    const received: unknown[] = []
    orders.on('publication', ({ data }) => received.push(data))
    await subscribed(orders)
    await signOut()
    await relay.publish('orders:42', 'while nobody was signed in')
    await signIn('bob')
    await subscribed(orders)
    t.same(users(), ['bob'])
    t.same(received, [], 'nothing is recovered for another user')
  })

  t.test('a client whose user was changed by another tab does not reconnect with the old token', async (t) => {
    const { realtime, relay, signIn, signInElsewhere, users, connects } = await setUp(t)
    await signIn('ada')
    const orders = realtime.subscribe('orders:42')
    await subscribed(orders)
    await signInElsewhere('bob')
    t.same(users(), ['ada'], 'browsers do not report changed cookies')
    await relay.api('disconnect', { user: 'ada', disconnect: { code: 3001, reason: 'a restart' } })
    await eventually(() => users().includes('bob'))
    await subscribed(orders)
    t.same(connects, ['ada', 'bob'])
  })

  t.test('a user who changes during the negotiation does not connect with its result', async (t) => {
    const { realtime, signIn, signInElsewhere, users, connects, hold } = await setUp(t)
    await signIn('ada')
    const negotiated = hold()
    const orders = realtime.subscribe('orders:42')
    const release = await negotiated
    await signInElsewhere('bob')
    release()
    await subscribed(orders)
    t.same(users(), ['bob'])
    t.same(connects, ['bob'])
  })

  t.test('the end of the session closes the connection', async (t) => {
    const { realtime, signIn, clock, users, client } = await setUp(t)
    await signIn('ada')
    await subscribed(realtime.subscribe('orders:42'))
    clock.advance(3_700_000)
    t.equal(client.session.state.isSignedIn, false)
    t.equal(realtime.state, 'offline')
    await eventually(() => users().length === 0)
  })

  t.test('a client without subscriptions does not connect after a sign-in, unless it was started', async (t) => {
    const { realtime, signIn, signOut, negotiations } = await setUp(t)
    await signIn('ada')
    const orders = realtime.subscribe('orders:42')
    await subscribed(orders)
    orders.unsubscribe()
    await signOut()
    await signIn('bob')
    t.equal(realtime.state, 'offline')
    t.equal(negotiations(), 1)
    realtime.start()
    await signIn('ada')
    t.equal(realtime.state, 'connecting')
  })

  t.test('a rejected visitor who was connected by start connects after the sign-in', async (t) => {
    const { realtime, signIn } = await setUp(t)
    const refused = nextEvent(realtime, 'refused')
    realtime.start()
    t.match(await refused, { channel: null, code: 'UNAUTHENTICATED', retryable: false })
    t.equal(realtime.state, 'offline')
    const connected = online(realtime)
    await signIn('ada')
    await connected
  })

  t.test('visitors are connected with the option anonymous, and again after a sign-out', async (t) => {
    const { signIn, signOut, realtime, users, acceptVisitors } = await setUp(t, { anonymous: true })
    acceptVisitors()
    const orders = realtime.subscribe('orders:42')
    await subscribed(orders)
    await signIn('ada')
    await eventually(() => users().join() === 'ada')
    await signOut()
    await eventually(() => users().join() === 'visitor')
    await subscribed(orders)
  })

  t.test('a stopped client stays closed when a user signs in', async (t) => {
    const { realtime, signIn, negotiations } = await setUp(t)
    realtime.subscribe('orders:42')
    realtime.stop()
    await signIn('ada')
    t.equal(realtime.state, 'offline')
    t.equal(negotiations(), 0)
  })

  t.test('a client that the service rejects waits until it is started', async (t) => {
    const { realtime, signIn, reject, negotiations } = await setUp(t)
    await signIn('ada')
    reject(true)
    const refused = nextEvent(realtime, 'refused')
    const orders = realtime.subscribe('orders:42')
    t.match(await refused, { channel: null, code: 'LOCKED', retryable: false })
    realtime.subscribe('orders:43')
    t.equal(negotiations(), 1)
    reject(false)
    realtime.start()
    await subscribed(orders)
  })

  t.test('a stored position of a visitor is used after the sign-in, and not for the next user', async (t) => {
    const { realtime, relay, signIn, signOut } = await setUp(t)
    const { epoch } = await relay.publish('orders:42', 1)
    await relay.publish('orders:42', 2)
    const orders = realtime.subscribe('orders:42', { recover: { offset: 1, epoch } })
    await signIn('ada')
    await eventually(() => orders.latest !== null)
    t.match(orders.latest, { data: 2, offset: 2 })
    await signOut()
    await signIn('bob')
    await subscribed(orders)
    t.equal(orders.latest, null)
  })

  t.test('a user who signs in again keeps the connection', async (t) => {
    const { realtime, signIn, negotiations, users } = await setUp(t)
    await signIn('ada')
    await subscribed(realtime.subscribe('orders:42'))
    await signIn('ada')
    t.equal(realtime.state, 'online')
    t.equal(negotiations(), 1)
    t.same(users(), ['ada'])
  })
})
