import t from 'tap'
import { CsrfTokens } from '../../src/gateway/session/csrf-tokens.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { secretKey } from '../../src/shared/jwt.js'
import { API_SECRET, startGateway } from '../helper/gateway.js'

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
