import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import packageFile from '../../../package.json' with { type: 'json' }
import { ROOT } from '../../../scripts/lib/root.js'
import { API_DOCS_PATHS } from '../../../src/gateway/api-docs/api-docs.js'
import { apiPage } from '../../../src/gateway/api-docs/page.js'
import { routeTables } from '../../../src/gateway/routes/index.js'
import { browserHeaders, startGateway } from '../../helper/gateway.js'
import { documentOf } from './read-document.js'

t.test('with API_DOCS', async (t) => {
  const { send, backend } = await startGateway(t, { hasAllRoutes: true, env: { API_DOCS: 'true' } })

  t.test('the page has no script, loads its own style only, and the CSP allows nothing else', async (t) => {
    const response = await send('/api/docs')
    t.equal(response.status, 200)
    t.match(response.headers, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' })
    t.match(response.headers['content-security-policy'], /^default-src 'none'; style-src 'self'; img-src data:;/)
    t.notMatch(response.body, /<script|<style|\sstyle=|\son\w+=/)
    const addresses = [...response.body.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(([, address = '']) => address)
    const files = addresses.filter((address) => !address.startsWith('data:'))
    t.same(files.sort(), ['/api/docs/json', '/api/docs/style.css'])
    for (const file of files) t.equal((await send(file)).status, 200, file)
    t.same(backend.requests, [])
  })

  t.test('the page shows every operation and schema of the document, and every link in it has a target', async (t) => {
    const { body } = await send('/api/docs')
    const { paths, components } = JSON.parse((await send('/api/docs/json')).body)
    for (const path of Object.keys(paths)) t.ok(body.includes(`<code>${path}</code>`), path)
    for (const name of Object.keys(components.schemas)) t.ok(body.includes(`id="schema-${name}"`), name)
    const ids = [...body.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id)
    t.equal(new Set(ids).size, ids.length, 'ids are unique')
    for (const [, id = ''] of body.matchAll(/href="#([^"]+)"/g)) t.ok(ids.includes(id), id)
  })

  t.test('the page has the colours of the other pages', async (t) => {
    const tokens = readFileSync(join(ROOT, 'src/ui/tokens.css'), 'utf8')
    const colours = (await send('/api/docs/style.css')).body.match(/--[\w-]+: light-dark\(.+?\);/g) ?? []
    t.ok(colours.length > 10)
    for (const colour of colours) t.ok(tokens.includes(colour), colour)
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

t.test('text of a document is shown as text', async (t) => {
  const schema = { type: 'object', properties: { '<b>': { type: 'string', description: '`<i>` & "more"' } } }
  const document = {
    info: { title: '<script>', description: 'One\n\n- two `<u>`\n- three' },
    paths: { '/a': { get: { tags: 'none', responses: { 200: { content: { 'text/plain': { schema } } } } }, post: 5 } },
    components: { schemas: { Loop: { type: 'array', items: { $ref: '#/components/schemas/Loop' } } } }
  }
  const page = apiPage(document, { document: '/json', style: '/style.css' })
  t.notMatch(page, /<script>|<b>|<i>|<u>/)
  t.match(page, '<ul><li>two <code>&lt;u&gt;</code></li><li>three</li></ul>')
  t.match(page, 'array of <a href="#schema-Loop">Loop</a>')
  t.match(page, '<code class="name">&lt;b&gt;</code> <span class="muted">string</span>')
})
