import t from 'tap'
import { ApiError, RelayError, type Subscription } from '../../../src/client/index.js'
import { eventually } from '../../helper/eventually.js'
import { nextOf, subscribed } from '../../helper/realtime.js'
import { ADA, BOB, fakeStage, realStage, type Stage } from './stages.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const COMPARED_HEADERS = ['x-gateway-error', 'cache-control', 'www-authenticate', 'allow']

/** What a call resolves or rejects to, without what differs at every run. */
const outcome = async (call: Promise<unknown>): Promise<unknown> => {
  try {
    return { value: await call }
  } catch (error) {
    if (error instanceof RelayError) return { code: error.code, message: error.message, temporary: error.temporary }
    if (!(error instanceof ApiError)) throw error
    const { code, status, message, details, retryable } = error
    return { code, status, message, details, retryable }
  }
}

const responseOf = async (sent: Promise<Response>): Promise<unknown> => {
  const { status, headers, ...response } = await sent.then(async (response) => ({
    status: response.status,
    headers: response.headers,
    json: (await response.json()) as Record<string, unknown>
  }))
  const { requestId, csrfToken, ...body } = response.json
  const compared = COMPARED_HEADERS.map((name) => [name, headers.get(name)])
  return { status, body, fields: [typeof requestId, typeof csrfToken], headers: Object.fromEntries(compared) }
}

const useHttp = async ({ client, fetch }: Stage): Promise<Record<string, unknown>> => {
  const { call, session } = client
  const state = (): unknown => ({ ...session.state, expiresAtMs: typeof session.state.expiresAtMs })
  const login = (password: string) => call('POST', '/api/auth/login', { body: { email: ADA.email, password } })
  const post = (headers: Record<string, string>, body = '{}') =>
    responseOf(fetch('/api/carts', { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body }))
  const results: Record<string, unknown> = {
    signedOut: state(),
    writeSignedOut: await outcome(call('POST', '/api/carts', { body: { name: 'Meals' } })),
    strictSignedOut: await responseOf(fetch('/api/audit')),
    wrongPassword: await outcome(login('wrong')),
    login: await outcome(login('right')),
    signedIn: state(),
    read: await outcome(call('GET', '/api/carts')),
    write: await outcome(call('POST', '/api/carts', { body: { name: 'Meals' } })),
    unknownPath: await responseOf(fetch('/api/unknown')),
    otherMethod: await outcome(call('PUT', '/api/carts', { body: {} })),
    notAdmin: await outcome(call('POST', '/api/admin/users', { body: {} })),
    providers: await outcome(call('GET', '/api/auth/providers')),
    withoutCsrf: await post({}),
    wrongCsrf: await post({ 'x-csrf-token': 'other' }),
    csrfToken: await responseOf(fetch('/api/auth/csrf-token'))
  }
  const { csrfToken } = await call<{ csrfToken: string }>('GET', '/api/auth/csrf-token')
  results.malformed = await post({ 'x-csrf-token': csrfToken }, '{')
  return results
}

const withoutIds = ({ user, connInfo }: { readonly user: string; readonly connInfo?: unknown }) => ({ user, connInfo })

const useChannel = async (
  { publish, bobJoins, disconnect }: Stage,
  orders: Subscription
): Promise<Record<string, unknown>> => {
  const received: unknown[] = []
  orders.on('publication', ({ data, offset, info }) => received.push({ data, offset, info: info && withoutIds(info) }))
  // The relay sends a client its own join too.
  const joined: unknown[] = []
  orders.on('join', (info) => joined.push(withoutIds(info)))
  await subscribed(orders)
  await eventually(() => joined.length === 1)
  const bobLeaves = await bobJoins('orders:42')
  await eventually(() => joined.length === 2)
  const results: Record<string, unknown> = { joined: [...joined] }
  const users = (await orders.presence()).map(withoutIds)
  results.presence = users.toSorted((one, other) => one.user.localeCompare(other.user))
  results.stats = await orders.presenceStats()
  const left = nextOf(orders, 'leave')
  bobLeaves()
  results.left = withoutIds(await left)

  await publish('orders:42', { packed: 1 })
  results.ownPublication = await outcome(orders.publish({ packed: 2 }))
  await eventually(() => received.length === 2)
  await disconnect()
  await publish('orders:42', { packed: 3 })
  await eventually(() => received.length === 3 && orders.state === 'subscribed')
  const { publications, offset } = await orders.history({ limit: 2, reverse: true })
  return { ...results, received, history: publications.map(({ data, offset }) => ({ data, offset })), offset }
}

const useRealtime = async (stage: Stage): Promise<Record<string, unknown>> => {
  const { realtime, signOut, session } = stage.client
  const results = await useChannel(stage, realtime.subscribe('orders:42', { joinLeave: true }))
  const forbidden = realtime.subscribe('private:1')
  const unknown = realtime.subscribe('other:1')
  await eventually(() => [forbidden, unknown].every(({ state }) => state === 'unsubscribed'))
  const errors = [forbidden, unknown].map(({ error }) => error && { code: error.code, message: error.message })
  return {
    ...results,
    errors,
    rpc: await outcome(realtime.rpc('add', { a: 2, b: 3 })),
    rejectedRpc: await outcome(realtime.rpc('finish')),
    forbiddenPublish: await outcome(realtime.publish('other:1', {})),
    signOut: await outcome(signOut()),
    state: realtime.state,
    isSignedIn: session.state.isSignedIn
  }
}

t.test('the fake gateway and relay behave like the real ones', async (t) => {
  const [fake, real] = await Promise.all([fakeStage(t), realStage(t)])
  const [fakeHttp, realHttp] = [await useHttp(fake), await useHttp(real)]
  for (const [name, result] of Object.entries(realHttp)) t.strictSame(fakeHttp[name], result, name)
  const [fakeRealtime, realRealtime] = [await useRealtime(fake), await useRealtime(real)]
  for (const [name, result] of Object.entries(realRealtime)) t.strictSame(fakeRealtime[name], result, name)
  t.match(realRealtime.joined, [{ user: ADA.userId }, { user: BOB.userId }], 'the scenario ran')
})
