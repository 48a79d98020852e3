import { Type } from '@sinclair/typebox'
import t from 'tap'
import packageFile from '../../../package.json' with { type: 'json' }
import { fieldsOf } from '../../../src/gateway/api-docs/fields.js'
import { openApiDocument } from '../../../src/gateway/api-docs/openapi.js'
import { apiPage } from '../../../src/gateway/api-docs/page.js'
import { follower, operationsOf } from '../../../src/gateway/api-docs/reading.js'
import { API_DOCS_PATHS } from '../../../src/gateway/api-docs/routes.js'
import { post, type RouteTable, upload, withOptionalBody } from '../../../src/gateway/routes/declare.js'
import { routeTables } from '../../../src/gateway/routes/index.js'
import { UploadFormSchema } from '../../../src/gateway/routes/upload-form.js'
import { browserHeaders, startGateway } from '../../helper/gateway.js'

const document = openApiDocument(routeTables, { version: '1.2.3' })
const page = apiPage(document, '/api/docs/json')

const pageOf = (table: RouteTable): string => apiPage(openApiDocument([table], { version: '1' }), '/api/docs/json')

/** The part of the page that is about one operation. */
const partAbout = (operationId: string, whole = page): string => {
  const start = whole.indexOf(`<details id="${operationId}"`)
  return whole.slice(start, whole.indexOf('</details>', start))
}

const attributes = (name: string, whole = page): readonly string[] =>
  [...whole.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value)

t.test('the page', async (t) => {
  t.test('has every operation, with its method, path and summary', async (t) => {
    const missing = operationsOf(document).filter(({ method, path, operation }) => {
      const part = partAbout(operation.operationId)
      const texts = [`>${method.toUpperCase()}</b>`, `<code>${path}</code>`, `<span>${operation.summary}</span>`]
      return !texts.every((text) => part.includes(text))
    })
    t.same(missing, [])
    t.equal(page.match(/<details /g)?.length, operationsOf(document).length)
  })

  t.test('groups operations by domain, and links to each domain', async (t) => {
    const sections = [...page.matchAll(/<section id="([^"]+)">\s*<h2>([^<]+)<\/h2>/g)]
    t.same(
      sections.map(([, , name]) => name),
      routeTables.map(({ domain }) => domain)
    )
    const links = attributes('href').filter((address) => address.startsWith('#tag-'))
    t.same(
      links,
      sections.map(([, id]) => `#${id}`)
    )
  })

  t.test('has no two things of the same id', async (t) => {
    const ids = attributes('id')
    t.equal(new Set(ids).size, ids.length)
  })

  t.test('closes every element that it opens', async (t) => {
    const open: string[] = []
    const astray: string[] = []
    for (const [tag, slash, name = ''] of page.matchAll(/<(\/?)([a-z][a-z0-9]*)\b[^>]*>/g)) {
      if (['meta', 'link', 'input'].includes(name)) continue
      if (slash === '') open.push(name)
      else if (open.pop() !== name) astray.push(tag)
    }
    t.same(astray, [])
    t.same(open, [])
  })

  t.test('says what a body has to look like', async (t) => {
    const part = partAbout('zones.create')
    t.match(part, '<code>name</code> <em>required</em>')
    t.match(part, 'The name of the zone.')
    t.match(part, '1 to 200 characters')
    t.match(part, '<code>polygon[].x</code> <em>required</em>')
    t.match(part, '&quot;name&quot;: &quot;Assembly area&quot;')
    t.match(part, 'Needs a session and a CSRF token.')
  })

  t.test('says which bodies may be left out', async (t) => {
    t.match(partAbout('zones.delete'), 'application/json, may be left out')
    t.notMatch(partAbout('zones.create'), 'may be left out')
    t.match(partAbout('personnel.photo.upload'), 'multipart/form-data')
  })

  t.test('says what an operation may be refused for', async (t) => {
    const codes = [...partAbout('auth.logout').matchAll(/<td>(\d+)<\/td><td><code>([A-Z_]+)<\/code>/g)]
    t.same(
      codes.map(([, status, code]) => `${status} ${code}`),
      [
        '400 MALFORMED_BODY',
        '400 VALIDATION_FAILED',
        '403 CSRF_MISMATCH',
        '403 ORIGIN_REFUSED',
        '413 BODY_TOO_LARGE',
        '415 UNSUPPORTED_MEDIA_TYPE'
      ]
    )
  })

  t.test('says what the gateway itself answers', async (t) => {
    t.match(partAbout('auth.csrfToken'), '<code>csrfToken</code>')
    t.match(partAbout('health.ready'), '<code>backend.latencyMs</code>')
  })

  t.test('asks nobody for anything', async (t) => {
    t.same(attributes('src'), [])
    t.same(
      attributes('href').filter((address) => !address.startsWith('#')),
      ['data:,', '/api/docs/json']
    )
    t.notMatch(page, /@import|url\(|fetch\(|import\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon/)
    t.notMatch(page, /<(?:iframe|object|embed|base|img|video|audio)\b/)
  })
})

t.test('hostile text', async (t) => {
  const SCRIPT = '</script></style><script>alert(1)</script>'
  const ATTRIBUTE = `" onmouseover="alert(1)" x='`
  const hostile = `${SCRIPT}${ATTRIBUTE} & \`${SCRIPT}\``
  const body = Type.Object(
    { [hostile]: Type.Optional(Type.String({ description: hostile, pattern: hostile })), a: Type.Literal(hostile) },
    { title: hostile, description: hostile, examples: [{ [hostile]: hostile }] }
  )
  const rows = [
    withOptionalBody(post(`/api/${hostile}/:id`, hostile, body)),
    upload(`/api/b/${hostile}`, hostile, UploadFormSchema)
  ]
  const whole = pageOf({ domain: hostile, about: hostile, rows })

  t.test('stays text', async (t) => {
    t.equal(whole.match(/<script/gi)?.length, 1, 'our own')
    t.equal(whole.match(/<\/script/gi)?.length, 1)
    t.equal(whole.match(/<\/style/gi)?.length, 1)
    t.notMatch(whole, '" onmouseover')
    t.match(whole, '&lt;script&gt;alert(1)&lt;/script&gt;')
    t.match(whole, '&quot; onmouseover=&quot;alert(1)&quot; x=&#39; &amp; ')
  })
})

t.test('fieldsOf', async (t) => {
  const follow = follower(document)
  const rowsOf = (schema: Parameters<typeof fieldsOf>[0]) =>
    fieldsOf(schema, follow).map(({ name, type, limits }) => [name, type, limits].filter(Boolean).join(' ~ '))

  const CASES: readonly (readonly [string, Parameters<typeof fieldsOf>[0], readonly string[]])[] = [
    ['a text', { properties: { a: { type: 'string', maxLength: 5 } } }, ['a ~ string ~ at most 5 characters']],
    [
      'a text that has to say something',
      { properties: { a: { type: 'string', minLength: 1, pattern: '^a' } } },
      ['a ~ string ~ at least 1 character · like ^a']
    ],
    [
      'a number within limits',
      { properties: { a: { type: 'number', minimum: -1000, maximum: 1e6 } } },
      ['a ~ number ~ -1\u202f000 to 1\u202f000\u202f000']
    ],
    [
      'a number without a limit worth the name',
      { properties: { a: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER } } },
      ['a ~ integer ~ at least 0']
    ],
    [
      'something that may be null',
      { properties: { a: { anyOf: [{ anyOf: [{ type: 'string' }, { type: 'integer' }] }, { type: 'null' }] } } },
      ['a ~ string | integer | null']
    ],
    ['one of some words', { properties: { a: { anyOf: [{ const: 'x' }, { const: 'y' }] } } }, ['a ~ "x" | "y"']],
    ['what must not be there', { properties: { a: { not: {} } } }, ['a ~ not allowed']],
    [
      'a list of lists',
      { properties: { a: { type: 'array', items: { type: 'array', items: { type: 'number' } }, maxItems: 3 } } },
      ['a ~ number[][] ~ at most 3 entries']
    ],
    [
      'a list of different things',
      { properties: { a: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } } } },
      ['a ~ (string | null)[]']
    ],
    [
      'an object in an object',
      { properties: { a: { type: 'object', properties: { b: { type: 'boolean' } } } } },
      ['a ~ object', 'a.b ~ boolean']
    ],
    [
      'objects in a list',
      { properties: { a: { type: 'array', items: { type: 'object', properties: { b: { type: 'boolean' } } } } } },
      ['a ~ object[]', 'a[].b ~ boolean']
    ],
    [
      'two forms with a field in common',
      { anyOf: [{ properties: { a: { const: 1 } } }, { properties: { a: { const: 2 }, b: { type: 'null' } } }] },
      ['a ~ 1', 'b ~ null']
    ],
    [
      'what a reference leads to',
      { $ref: '#/components/schemas/ActionNote' },
      ['reason ~ string | null ~ at most 500 characters', 'note ~ string | null ~ at most 2\u202f000 characters']
    ]
  ]
  for (const [what, schema, expected] of CASES) {
    t.test(`names ${what}`, async (t) => {
      t.same(rowsOf(schema), expected)
    })
  }
})

t.test('a gateway that describes itself', async (t) => {
  const { send, backend } = await startGateway(t, { env: { API_DOCS: 'true' } })
  const own = openApiDocument(routeTables, packageFile)

  t.test('serves the page, under the policy of every answer', async (t) => {
    const answer = await send('/api/docs')
    t.equal(answer.status, 200)
    t.match(answer.headers, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' })
    t.match(answer.headers['content-security-policy'], /script-src 'self' 'unsafe-inline'(?:;| )/)
    t.equal(answer.body, apiPage(own, '/api/docs/json'))
    t.same(backend.requests, [])
  })

  t.test('serves the document', async (t) => {
    const answer = await send('/api/docs/json')
    t.equal(answer.status, 200)
    t.match(answer.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' })
    t.same(answer.json(), own)
  })

  for (const path of API_DOCS_PATHS) {
    t.test(`answers a HEAD of ${path} itself`, async (t) => {
      const answer = await send(path, { method: 'HEAD' })
      t.equal(answer.status, 200)
      t.equal(answer.body, '')
      t.same(backend.requests, [])
    })

    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      t.test(`has no ${method} ${path}, and does not forward it`, async (t) => {
        const headers = { ...browserHeaders(), 'content-type': 'text/plain' }
        const answer = await send(path, { method, headers, body: 'whatever' })
        t.equal(answer.status, 405)
        t.equal(answer.code, 'METHOD_NOT_ALLOWED')
        t.equal(answer.headers.allow, 'GET, HEAD, OPTIONS')
        t.same(backend.requests, [])
      })
    }
  }
})

t.test('a gateway in production', async (t) => {
  const { send, backend } = await startGateway(t)

  for (const path of API_DOCS_PATHS) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      t.test(`has no ${method} ${path}, and does not forward it`, async (t) => {
        const answer = await send(path, { method, headers: browserHeaders() })
        t.equal(answer.status, 404)
        t.equal(answer.headers['x-gateway-error'], 'NOT_FOUND')
        t.same(backend.requests, [])
      })
    }

    t.test(`does not forward another spelling of ${path} either`, async (t) => {
      t.equal((await send(`${path}/`)).code, 'AMBIGUOUS_PATH')
      t.equal((await send(path.replace('docs', 'Docs'))).code, 'AMBIGUOUS_PATH')
      t.same(backend.requests, [])
    })
  }
})
