import t from 'tap'
import { CsrfTokens } from '../../src/gateway/session/csrf-tokens.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { secretKey } from '../../src/shared/jwt.js'
import { cookieJar } from '../helper/cookie-jar.js'
import { API_SECRET, startGateway, type TestGateway } from '../helper/gateway.js'
import { startBackend } from '../helper/recording-backend.js'

const PREVIOUS = 'the-secret-before-that-0123456789-abcdef'
const OTHER = 'a-secret-that-nobody-knows-0123456789-ab'
const STRICT_PATH = '/api/audit/logs'

const tokenSignedWith = (secret: string, format: 'jwt' | 'legacy'): string =>
  createAppToken({ userId: 'u1', role: 'admin' }, secretKey(secret), { format, lifetimeSeconds: 3600 })

t.test('with API_SECRET_PREVIOUS', async (t) => {
  const gateway = await startGateway(t, { env: { API_SECRET_PREVIOUS: PREVIOUS, CSRF_MODE: 'signed' } })
  const statusWith = async (token: string): Promise<number> =>
    (await gateway.send(STRICT_PATH, { headers: { cookie: `auth_token=${token}` } })).status

  for (const format of ['jwt', 'legacy'] as const) {
    t.test(`the gateway accepts ${format} tokens that were signed with either secret, and no others`, async (t) => {
      t.equal(await statusWith(tokenSignedWith(API_SECRET, format)), 200)
      t.equal(await statusWith(tokenSignedWith(PREVIOUS, format)), 200)
      t.equal(await statusWith(tokenSignedWith(OTHER, format)), 401)
    })
  }

  t.test('signed CSRF tokens of both secrets are accepted, and none is issued with the previous one', async (t) => {
    const post = async (token: string): Promise<number> => {
      const cookie = `auth_token=${tokenSignedWith(API_SECRET, 'jwt')}; csrf_token=${token}`
      const headers = { cookie, 'x-csrf-token': token }
      return (await gateway.send('/api/unknown', { method: 'POST', headers })).status
    }
    t.equal(await post(new CsrfTokens(PREVIOUS).issue()), 200)
    t.equal(await post(new CsrfTokens(OTHER).issue()), 403)
    const issued = JSON.parse((await gateway.send('/api/auth/csrf-token')).body).csrfToken
    t.equal(await post(issued), 200)
    t.ok(new CsrfTokens(API_SECRET).isValid(issued))
    t.notOk(new CsrfTokens(PREVIOUS).isValid(issued))
  })
})

t.test('without API_SECRET_PREVIOUS, tokens of the previous secret are rejected', async (t) => {
  const { send } = await startGateway(t)
  const cookie = `auth_token=${tokenSignedWith(PREVIOUS, 'jwt')}`
  t.match(await send(STRICT_PATH, { headers: { cookie } }), { status: 401, code: 'UNAUTHENTICATED' })
})

/** A user who signs in once, and reads and changes data from then on. */
const signIn = async (gateway: () => TestGateway) => {
  const jar = cookieJar()
  const call = async (path: string, method = 'GET'): Promise<number> => {
    const csrf = /csrf_token=([^;]+)/.exec(jar.readable)?.[1] ?? ''
    const headers = { 'x-csrf-token': decodeURIComponent(csrf), 'content-type': 'application/json' }
    const body = method === 'GET' ? null : JSON.stringify({ email: 'ada@example.com', password: 'correct horse' })
    return (await jar.fetch(`${gateway().url}${path}`, { method, headers, body })).status
  }
  const statuses: number[] = [await call('/api/auth/csrf-token'), await call('/api/auth/login', 'POST')]
  return {
    statuses,
    use: async (times: number): Promise<void> => {
      for (let n = 0; n < times; n++) statuses.push(await call(STRICT_PATH), await call('/api/unknown', 'POST'))
    }
  }
}

t.test('a rotation of API_SECRET under load ends no session', async (t) => {
  const NEW = 'the-secret-after-that-one-0123456789-ab'
  const backend = await startBackend(t)
  let tokenSecret = API_SECRET
  backend.respond = ({ url }, response) => {
    response.setHeader('content-type', 'application/json')
    const token = tokenSignedWith(tokenSecret, 'jwt')
    const user = { userId: 'u1', email: 'ada@example.com', displayName: 'Ada', role: 'admin' }
    const login = { success: true, data: { token, user, expiresIn: 3600 } }
    response.end(JSON.stringify(url === '/api/auth/login' ? login : { success: true }))
  }
  const start = (env: Record<string, string>): Promise<TestGateway> =>
    startGateway(t, { backend, env: { CSRF_MODE: 'signed', COOKIE_SECURE: 'false', LOGIN_LIMIT_MAX: '1000', ...env } })
  let gateway = await start({})
  const users: Awaited<ReturnType<typeof signIn>>[] = []
  const run = async (): Promise<void> => {
    for (let n = 0; n < 3; n++) users.push(await signIn(() => gateway))
    await Promise.all(users.map((user) => user.use(5)))
  }

  await run()
  // The proxy sends requests to a new gateway while users go on.
  const duringRestart = Promise.all(users.map((user) => user.use(20)))
  gateway = await start({ API_SECRET: NEW, API_SECRET_PREVIOUS: API_SECRET })
  await duringRestart
  await run()
  tokenSecret = NEW
  await run()
  const statuses = users.flatMap((user) => user.statuses)
  t.ok(statuses.length > 300)
  t.same([...new Set(statuses)], [200])

  t.test('after the rotation only sessions of the new secret are valid', async (t) => {
    gateway = await start({ API_SECRET: NEW })
    const [oldest, newest] = [users[0], users.at(-1)]
    await Promise.all([oldest?.use(1), newest?.use(1)])
    t.same(newest?.statuses.slice(-2), [200, 200])
    t.same(oldest?.statuses.slice(-2), [401, 403])
  })
})
