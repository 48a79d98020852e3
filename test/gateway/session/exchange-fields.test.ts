import t from 'tap'
import { startGateway } from '../../helper/gateway.js'

const LOGIN = { email: 'ada@example.com', password: 'secret' }

t.test('login from a browser', async (t) => {
  const { send, backend } = await startGateway(t, { env: { LOGIN_LIMIT_MAX: '1000' } })
  const cases: readonly (readonly [string, string, object])[] = [
    ['okta in its body', '/api/auth/login', { ...LOGIN, okta: true }],
    ['groups in its body', '/api/auth/backend-login', { ...LOGIN, groups: ['admin'] }],
    ['okta in capitals', '/api/auth/login', { ...LOGIN, OKTA: true }],
    ['okta with a space behind it', '/api/auth/login', { ...LOGIN, 'okta ': true }],
    ['okta[] in its body', '/api/auth/login', { ...LOGIN, 'okta[]': true }],
    ['okta with a null character in its body', '/api/auth/login', { ...LOGIN, 'okta\0x': true }],
    ['okta in its query', '/api/auth/login?okta=true', LOGIN],
    ['okta[] in its query', '/api/auth/login?okta[]=true', LOGIN],
    ['an encoded okta[] in its query', '/api/auth/login?%6fkta%5B%5D=true', LOGIN],
    ['[okta] in its query', '/api/auth/login?[okta]=true', LOGIN],
    ['okta after a semicolon in its query', '/api/auth/login?a=1;okta=true', LOGIN],
    ['okta after a second question mark', '/api/auth/login?a=1?&okta=true', LOGIN],
    ['groups with an index in its query', '/api/auth/login?groups[0]=admin', LOGIN],
    ['groups as a member in its query', '/api/auth/login?user.groups=admin', LOGIN],
    ['groups in its query', '/api/auth/backend-login?a=1&Groups=admin', LOGIN]
  ]
  for (const [title, path, body] of cases) {
    t.test(`a login with ${title} is rejected, because it would need no password`, async (t) => {
      const headers = { 'content-type': 'application/json' }
      const response = await send(path, { method: 'POST', headers, body: JSON.stringify(body) })
      t.equal(response.code, 'VALIDATION_FAILED')
      t.same(backend.requests, [])
    })
  }

  for (const path of ['/api/auth/Login', '/api/auth/login/', '/api/auth/%EF%BD%8Cogin']) {
    t.test(`a login at ${path} is rejected`, async (t) => {
      const response = await send(path, { method: 'POST', body: JSON.stringify({ ...LOGIN, okta: true }) })
      t.equal(response.code, 'AMBIGUOUS_PATH')
      t.same(backend.requests, [])
    })
  }
})

t.test('EXCHANGE_FIELD renames the field that a browser may not send, and okta stays rejected', async (t) => {
  const { send, backend } = await startGateway(t, { env: { EXCHANGE_FIELD: 'via_provider' } })
  const headers = { 'content-type': 'application/json' }
  for (const field of ['via_provider', 'VIA_PROVIDER', 'via_provider[]', 'via.provider', 'okta']) {
    const body = JSON.stringify({ ...LOGIN, [field]: true })
    const response = await send('/api/auth/login', { method: 'POST', headers, body })
    t.equal(response.code, 'VALIDATION_FAILED', field)
  }
  t.same(backend.requests, [])
})
