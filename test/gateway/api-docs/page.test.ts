import t from 'tap'
import packageFile from '../../../package.json' with { type: 'json' }
import { API_DOCS_PATHS } from '../../../src/gateway/api-docs/api-docs.js'
import { routeTables } from '../../../src/gateway/routes/index.js'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { documentOf } from './read-document.js'

t.test('with API_DOCS', async (t) => {
  const { send, backend } = await startGateway(t, { env: { API_DOCS: 'true' } })

  t.test('the Swagger UI page loads its own files only, and the CSP allows no others', async (t) => {
    const response = await send('/api/docs')
    t.equal(response.status, 200)
    t.match(response.headers, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' })
    t.match(response.headers['content-security-policy'], /script-src 'self';/)
    t.notMatch(response.body, /<script>|<style>|\son\w+=/)
    const files = [...response.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = '']) => file)
    t.ok(files.length > 3)
    for (const file of files) t.equal((await send(file)).status, 200, file)
    t.same(backend.requests, [])
  })

  t.test('the gateway serves the OpenAPI document', async (t) => {
    const response = await send('/api/docs/json')
    t.equal(response.status, 200)
    t.match(response.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' })
    t.same(response.json(), await documentOf(routeTables, packageFile.version))
  })

  for (const path of API_DOCS_PATHS) {
    t.test(`HEAD ${path} is not forwarded`, async (t) => {
      const response = await send(path, { method: 'HEAD' })
      t.equal(response.status, 200)
      t.equal(response.body, '')
      t.same(backend.requests, [])
    })

    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      t.test(`${method} ${path} is 405 and not forwarded`, async (t) => {
        const headers = { ...browserHeaders(), 'content-type': 'text/plain' }
        const response = await send(path, { method, headers, body: 'text' })
        t.equal(response.status, 405)
        t.equal(response.code, 'METHOD_NOT_ALLOWED')
        t.equal(response.headers.allow, 'GET, HEAD, OPTIONS')
        t.same(backend.requests, [])
      })
    }
  }
})

t.test('in production', async (t) => {
  const { send, backend } = await startGateway(t)

  for (const path of API_DOCS_PATHS) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      t.test(`${method} ${path} is 404 in production and not forwarded`, async (t) => {
        const response = await send(path, { method, headers: browserHeaders() })
        t.equal(response.status, 404)
        t.equal(response.headers['x-gateway-error'], 'NOT_FOUND')
        t.same(backend.requests, [])
      })
    }

    t.test(`other spellings of ${path} are not forwarded`, async (t) => {
      t.equal((await send(`${path}/`)).code, 'AMBIGUOUS_PATH')
      t.equal((await send(path.replace('docs', 'Docs'))).code, 'AMBIGUOUS_PATH')
      t.same(backend.requests, [])
    })
  }
})
