import t from 'tap'
import { startGateway } from '../../helper/gateway.js'

const LOGIN = { email: 'ada@example.com', password: 'secret' }

t.test('login from a browser', async (t) => {
  const cases: readonly (readonly [string, string, object])[] = [
    ['okta in its body', '/api/auth/login', { ...LOGIN, okta: true }],
    ['groups in its body', '/api/auth/backend-login', { ...LOGIN, groups: ['admin'] }],
    ['okta in capitals', '/api/auth/login', { ...LOGIN, OKTA: true }],
    ['okta with a space behind it', '/api/auth/login', { ...LOGIN, 'okta ': true }],
    ['okta in its query', '/api/auth/login?okta=true', LOGIN],
    ['groups in its query', '/api/auth/backend-login?a=1&Groups=admin', LOGIN]
  ]
  for (const [title, path, body] of cases) {
    t.test(`a login with ${title} is rejected, because it would need no password`, async (t) => {
      const { send, backend } = await startGateway(t)
      const headers = { 'content-type': 'application/json' }
      const response = await send(path, { method: 'POST', headers, body: JSON.stringify(body) })
      t.equal(response.code, 'VALIDATION_FAILED')
      t.same(backend.requests, [])
    })
  }

  for (const path of ['/api/auth/Login', '/api/auth/login/', '/api/auth/%EF%BD%8Cogin']) {
    t.test(`a login at ${path} is rejected`, async (t) => {
      const { send, backend } = await startGateway(t)
      const response = await send(path, { method: 'POST', body: JSON.stringify({ ...LOGIN, okta: true }) })
      t.equal(response.code, 'AMBIGUOUS_PATH')
      t.same(backend.requests, [])
    })
  }
})
