import { Agent } from 'node:http'
import type { TSchema } from '@sinclair/typebox'
import t from 'tap'
import { routeTables } from '../../../src/gateway/routes/index.js'
import type { RouteDeclaration } from '../../../src/gateway/routes/tables/declare.js'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'
import type { HttpResponse, Message } from '../../helper/http.js'
import { detailsOf } from '../../helper/http.js'
import type { RecordedRequest } from '../../helper/recording-backend.js'
import { propertiesOf, requiredOf, typesOf } from '../../helper/schema.js'

// Tests every declared route through one listening gateway. The expectations come from the route tables, so that new
// routes are tested automatically.

const WRITE_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']
const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']

// A browser calls these before it can hold a CSRF token.
const WITHOUT_CSRF = ['/api/auth/login', '/api/auth/backend-login']

const UPLOAD_LIMIT = 2048
const MAX_FAULTS = 20

const rows = routeTables.flatMap((table) => table.rows)
const paths = [...new Set(rows.map(({ path }) => path))]
const reads = rows.filter(({ method }) => method === 'GET')
const forwardedReads = reads.filter(({ kind }) => kind !== 'local')
const writes = rows.filter(({ method }) => method !== 'GET')
const uploads = writes.filter(({ kind }) => kind === 'upload')

/** Rows that take JSON, each with its schema. */
const jsonWrites = writes.flatMap((row) => (row.body === null ? [] : [{ row, schema: row.body }]))

const isPublic = ({ path }: RouteDeclaration): boolean => path.startsWith('/api/auth/')
const isStrict = ({ path }: RouteDeclaration): boolean => path.startsWith('/api/audit/')

// An id with a capital and an encoded space, and a query with everything that a parser would tidy up.
const pathOf = (template: string): string => template.replace(/:\w+/g, 'Ab%20-7')
const QUERY = '?b=2&a=1&a=%7e+x&empty=&flag&q=%C3%A9'

const nameOf = ({ method, path }: RouteDeclaration): string => `${method} ${path}`

const token = tokenOf('operator')
const signedIn = browserHeaders(token)
const withoutPair = { cookie: `auth_token=${token}` }
const json = { 'content-type': 'application/json' }
const multipart = { 'content-type': 'multipart/form-data; boundary=edge' }
const FORM = '--edge\r\nContent-Disposition: form-data; name="file"; filename="a.svg"\r\n\r\n<svg/>\r\n--edge--\r\n'

const gateway = await startGateway(t, {
  hasAllRoutes: true,
  env: { TRUST_PROXY: 'loopback', UPLOAD_LIMIT: String(UPLOAD_LIMIT), LOGIN_REQUEST_FIELDS: 'b,a,empty,flag,q' }
})
const agent = new Agent({ keepAlive: true })
t.teardown(() => agent.destroy())

interface Exchange {
  readonly response: HttpResponse
  /** The requests at the backend. */
  readonly reached: readonly RecordedRequest[]
}

let clients = 0

const request = async (path: string, { headers, ...message }: Message): Promise<Exchange> => {
  const { requests } = gateway.backend
  requests.length = 0
  // From a different address each time, so that the login limit does not apply.
  clients += 1
  const from = { 'x-forwarded-for': `10.0.${clients >> 8}.${clients & 255}` }
  const response = await gateway.send(path, { ...message, headers: { ...from, ...headers }, agent })
  return { response, reached: requests.slice() }
}

/** The error code, if any, and the number of requests at the backend. */
const summary = ({ response, reached }: Exchange) => ({
  status: response.status,
  code: response.code,
  forwarded: reached.length
})

const passed = { status: 200, code: '', forwarded: 1 }
const rejectedWith = (status: number, code: string) => ({ status, code, forwarded: 0 })

/** The first example of a schema. */
const exampleOf = (schema: TSchema): Readonly<Record<string, unknown>> => schema.examples[0]

/** A valid body or form. */
const goodMessage = ({ method, body }: RouteDeclaration): Message =>
  body === null
    ? { method, headers: multipart, body: FORM }
    : { method, headers: json, body: JSON.stringify(exampleOf(body)) }

const withHeaders = (message: Message, headers: Readonly<Record<string, string>>): Message => ({
  ...message,
  headers: { ...message.headers, ...headers }
})

t.test('every read', async (t) => {
  for (const row of forwardedReads) {
    t.test(`a valid request is forwarded with the token of the cookie: ${nameOf(row)}`, async (t) => {
      const path = `${pathOf(row.path)}${QUERY}`

      const { response, reached } = await request(path, {
        headers: { ...signedIn, authorization: 'Bearer of-a-script' }
      })

      t.equal(response.status, 200)
      t.equal(response.body, '{"success":true}')
      t.same(
        reached.map(({ method, url, headers, body }) => [method, url, headers.authorization, headers.cookie, body]),
        [['GET', path, `Bearer ${token}`, undefined, '']]
      )
    })

    const outcome = isStrict(row) ? 'is refused' : "is left to the backend's judgement"
    t.test(`a read without a token ${outcome}: ${nameOf(row)}`, async (t) => {
      const { response, reached } = await request(pathOf(row.path), {})

      t.equal(response.code, isStrict(row) ? 'UNAUTHENTICATED' : '')
      t.same(
        reached.map(({ headers }) => headers.authorization),
        isStrict(row) ? [] : [undefined]
      )
    })
  }

  t.test('GET /api/auth/csrf-token is not forwarded', async (t) => {
    const { response, reached } = await request('/api/auth/csrf-token', {})

    t.equal(response.status, 200)
    const { csrfToken } = JSON.parse(response.body)
    t.match(response.headers['set-cookie'], [`csrf_token=${csrfToken};`])
    t.same(reached, [])
  })

  t.test('GET /api/auth/providers is not forwarded and returns an empty list', async (t) => {
    const { response, reached } = await request('/api/auth/providers', {})

    t.equal(response.status, 200)
    t.equal(response.body, '{"success":true,"data":[]}')
    t.equal(response.headers['cache-control'], 'no-store')
    t.same(reached, [])
  })
})

t.test('every write request without the CSRF pair', async (t) => {
  for (const row of writes) {
    const exempt = WITHOUT_CSRF.includes(row.path)
    t.test(
      `a write request without a CSRF token is ${exempt ? 'forwarded if it is exempt' : 'rejected'}: ${nameOf(row)}`,
      async (t) => {
        const exchange = await request(pathOf(row.path), withHeaders(goodMessage(row), withoutPair))

        t.same(summary(exchange), exempt ? passed : rejectedWith(403, 'CSRF_MISMATCH'))
      }
    )
  }
})

t.test('every write request without a token', async (t) => {
  const denied = writes.filter((row) => !isPublic(row))

  for (const row of writes) {
    t.test(
      `a write request without a token is ${isPublic(row) ? 'forwarded under /api/auth' : 'rejected'}: ${nameOf(row)}`,
      async (t) => {
        const headers = { ...browserHeaders(null), authorization: `Bearer ${token}` }

        const exchange = await request(pathOf(row.path), withHeaders(goodMessage(row), headers))

        t.same(summary(exchange), isPublic(row) ? passed : rejectedWith(401, 'UNAUTHENTICATED'))
      }
    )
  }

  t.test('a rejected write request is in the audit log', async (t) => {
    const records = await gateway.auditRecords()

    t.same(
      records.filter(({ method }) => method !== 'GET').map(({ method, resource }) => `${method} ${resource}`),
      denied.map(({ method, path }) => `${method} ${pathOf(path)}`)
    )
    t.same(
      records.filter(({ event, status, user }) => event !== 'unauthorized_access' || status !== 401 || user !== null),
      []
    )
  })
})

interface RejectedCase {
  readonly title: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly status: number
  readonly code: string
  /** The paths of the field errors, if known. */
  readonly faults?: readonly string[]
}

const malformed = { headers: json, status: 400, code: 'MALFORMED_BODY' }
const invalid = { headers: json, status: 400, code: 'VALIDATION_FAILED' }
const unsupported = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' }

const NEVER_JSON: readonly RejectedCase[] = [
  { title: 'JSON that breaks off', ...malformed, body: '{"name":' },
  { title: 'JSON with something after it', ...malformed, body: '{} {}' },
  { title: 'a prototype', ...malformed, body: '{"__proto__":{"isAdmin":true}}' },
  { title: 'a prototype in other letters', ...malformed, body: '{"a":{"__pr\\u006fto__":1}}' },
  { title: 'a prototype of the constructor', ...malformed, body: '{"constructor":{"prototype":{"isAdmin":true}}}' },
  { title: 'a list', ...invalid, body: '[]', faults: [''] },
  { title: 'a text', ...invalid, body: '"text"', faults: [''] },
  { title: 'a number', ...invalid, body: '7', faults: [''] },
  { title: 'null', ...invalid, body: 'null', faults: [''] },
  { title: 'a form', ...unsupported, headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'name=x' },
  { title: 'JSON that calls itself text', ...unsupported, headers: { 'content-type': 'text/plain' }, body: '{}' },
  { title: 'JSON that does not say so', ...unsupported, headers: {}, body: '{}' }
]

const NO_BODY: readonly RejectedCase[] = [
  { title: 'nothing', ...invalid, headers: {}, faults: [''] },
  { title: 'nothing that calls itself JSON', ...invalid, body: '', faults: [''] }
]

// A fraction is not valid for an integer either.
const SAMPLES: readonly (readonly [type: string, value: unknown])[] = [
  ['string', 'text'],
  ['number', 7.5],
  ['boolean', true],
  ['object', { foreign: 1 }]
]

const foreignTo = (schema: TSchema): unknown => SAMPLES.find(([type]) => !typesOf(schema).includes(type))?.[1]

/** The maximum number of reported errors. */
const inGroups = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / MAX_FAULTS) }, (_, group) =>
    items.slice(group * MAX_FAULTS, (group + 1) * MAX_FAULTS)
  )

/** Invalid bodies, derived from the schema. */
const wrongFor = (schema: TSchema): readonly RejectedCase[] => {
  const properties = propertiesOf(schema)
  const [[first, part] = ['', schema]] = properties
  const example = exampleOf(schema)
  return [
    {
      title: `a wrong type in ${first}`,
      ...invalid,
      body: JSON.stringify({ ...example, [first]: foreignTo(part) }),
      faults: [`/${first}`]
    },
    ...inGroups(properties).map((group) => ({
      title: `wrong types in ${group.map(([name]) => name)}`,
      ...invalid,
      body: JSON.stringify({
        ...example,
        ...Object.fromEntries(group.map(([name, each]) => [name, foreignTo(each)]))
      }),
      faults: group.map(([name]) => `/${name}`)
    })),
    ...requiredOf(schema).map((name) => ({
      title: `no ${name}`,
      ...invalid,
      body: JSON.stringify({ ...example, [name]: undefined }),
      faults: [`/${name}`]
    }))
  ]
}

const invalidPaths = (response: HttpResponse): string[] =>
  detailsOf(response)
    .map(({ path }) => path)
    .toSorted()

/** One case of each code. All routes share the parser of JSON, which the first route tests with all cases. */
const NEVER_JSON_PER_CODE = NEVER_JSON.filter(
  ({ code }, index) => NEVER_JSON.findIndex((other) => other.code === code) === index
)

t.test('every write request with an invalid body', async (t) => {
  for (const [index, { row, schema }] of jsonWrites.entries()) {
    t.test(`an invalid body is rejected: ${nameOf(row)}`, async (t) => {
      const neverJson = index === 0 ? NEVER_JSON : NEVER_JSON_PER_CODE
      const cases = [...neverJson, ...(row.bodyOptional ? [] : NO_BODY), ...wrongFor(schema)]
      for (const { title, headers, body, status, code, faults } of cases) {
        const message = {
          method: row.method,
          headers: { ...signedIn, ...headers },
          ...(body !== undefined && { body })
        }

        const exchange = await request(pathOf(row.path), message)

        t.same(summary(exchange), rejectedWith(status, code), title)
        if (faults !== undefined)
          t.same(invalidPaths(exchange.response), faults.toSorted(), `${title}: the field errors`)
      }
    })
  }

  t.test('the invalid bodies cover every field of every schema', async (t) => {
    for (const { schema } of jsonWrites)
      for (const [name, part] of propertiesOf(schema)) t.not(foreignTo(part), undefined, `${schema.$id} ${name}`)
  })
})

t.test('every write request with a valid body', async (t) => {
  for (const { row, schema } of jsonWrites) {
    t.test(`a valid request is forwarded with the token of the cookie: ${nameOf(row)}`, async (t) => {
      const path = `${pathOf(row.path)}${QUERY}`
      // A login has declared fields only.
      const isOpen = schema.additionalProperties === true && !WITHOUT_CSRF.includes(row.path)
      const extra = isOpen ? { unknown_field: { deep: [1, 'zwölf', null, { a: [] }] } } : {}
      const body = { ...exampleOf(schema), ...extra }

      const { response, reached } = await request(path, {
        method: row.method,
        headers: { ...signedIn, ...json, authorization: 'Bearer of-a-script' },
        body: JSON.stringify(body)
      })

      t.equal(response.status, 200)
      t.equal(response.body, '{"success":true}')
      t.same(
        reached.map(({ method, url, headers }) => [method, url, headers.authorization, headers.cookie]),
        [[row.method, path, `Bearer ${token}`, undefined]]
      )
      t.equal(reached[0]?.headers['content-type'], 'application/json')
      t.same(JSON.parse(reached[0]?.body ?? ''), body)
    })
  }

  for (const { row } of jsonWrites.filter(({ row: { bodyOptional } }) => bodyOptional)) {
    t.test(`a write request with an optional body is forwarded without one: ${nameOf(row)}`, async (t) => {
      for (const headers of [signedIn, { ...signedIn, ...json }]) {
        const { response, reached } = await request(pathOf(row.path), { method: row.method, headers })

        t.equal(response.status, 200)
        t.same(
          reached.map(({ method, url, body }) => [method, url, body]),
          [[row.method, pathOf(row.path), '']]
        )
      }
    })
  }
})

t.test('every upload', async (t) => {
  const over = 'x'.repeat(UPLOAD_LIMIT + 1)
  const rejected: readonly RejectedCase[] = [
    { title: 'JSON', ...unsupported, headers: json, body: '{}' },
    {
      title: 'a picture that is no form',
      ...unsupported,
      headers: { 'content-type': 'image/svg+xml' },
      body: '<svg/>'
    },
    {
      title: 'a form without a boundary',
      ...unsupported,
      headers: { 'content-type': 'multipart/form-data' },
      body: FORM
    },
    {
      title: 'a form with an empty boundary',
      ...unsupported,
      headers: { 'content-type': 'multipart/form-data; boundary=' },
      body: FORM
    },
    {
      title: 'a form with a boundary that is too long',
      ...unsupported,
      headers: { 'content-type': `multipart/form-data; boundary=${'x'.repeat(71)}` },
      body: FORM
    },
    { title: 'a form that does not say so', ...unsupported, headers: {}, body: FORM },
    { title: 'nothing', ...unsupported, headers: {} },
    { title: 'a form over the limit', status: 413, code: 'BODY_TOO_LARGE', headers: multipart, body: over }
  ]
  for (const row of uploads) {
    for (const { title, headers, body, status, code } of rejected) {
      t.test(`an upload rejects ${title}: ${nameOf(row)}`, async (t) => {
        const message = {
          method: row.method,
          headers: { ...signedIn, ...headers },
          ...(body !== undefined && { body })
        }

        t.same(summary(await request(pathOf(row.path), message)), rejectedWith(status, code))
      })
    }

    for (const [title, body] of [
      ['a form', FORM],
      ['a form of exactly the limit', FORM.padEnd(UPLOAD_LIMIT)]
    ] as const) {
      t.test(`an upload forwards ${title} unchanged: ${nameOf(row)}`, async (t) => {
        const path = `${pathOf(row.path)}${QUERY}`

        const { response, reached } = await request(path, {
          method: row.method,
          headers: { ...signedIn, ...multipart },
          body
        })

        t.equal(response.status, 200)
        t.match(reached, [
          { method: row.method, url: path, headers: { ...multipart, authorization: `Bearer ${token}` }, body }
        ])
      })
    }
  }
})

t.test('every path', async (t) => {
  for (const path of paths) {
    const own: string[] = rows.filter((row) => row.path === path).map(({ method }) => method)
    const isLocalRead = reads.some((row) => row.path === path && row.kind === 'local')
    const isAuth = path.startsWith('/api/auth/')
    const served = own.includes('GET') ? [...own, 'HEAD'] : own
    const missing = (isAuth ? METHODS : WRITE_METHODS).filter((method) => !served.includes(method))
    const allow = METHODS.filter((method) => !missing.includes(method))

    if (missing.length > 0)
      t.test(`undeclared ${isAuth ? '' : 'write '}requests are rejected: ${path}`, async (t) => {
        // The response to HEAD has no body.
        for (const method of missing.filter((each) => each !== 'HEAD')) {
          const body = WRITE_METHODS.includes(method) && { body: '{}' }
          const exchange = await request(pathOf(path), { method, headers: { ...signedIn, ...json }, ...body })

          t.same(summary(exchange), rejectedWith(405, 'METHOD_NOT_ALLOWED'), method)
          t.equal(exchange.response.headers.allow, allow.join(', '), method)
        }
      })

    t.test(`undeclared reads are forwarded: ${path}`, async (t) => {
      const reading = ['OPTIONS', ...(isLocalRead ? [] : ['HEAD']), ...(own.includes('GET') ? [] : ['GET'])]
      const methods = reading.filter((method) => !missing.includes(method))
      for (const method of methods) {
        const { response, reached } = await request(`${pathOf(path)}${QUERY}`, { method, headers: signedIn })

        t.equal(response.status, 200, method)
        t.same(
          reached.map(({ method, url, headers, body }) => [method, url, headers.authorization, body]),
          [[method, `${pathOf(path)}${QUERY}`, `Bearer ${token}`, '']],
          method
        )
      }
    })

    t.test(`a path with a trailing slash is rejected: ${path}`, async (t) => {
      for (const method of own) {
        const exchange = await request(`${pathOf(path)}/`, { method, headers: signedIn })

        t.same(summary(exchange), rejectedWith(400, 'AMBIGUOUS_PATH'), method)
      }
    })

    t.test(`a path in another letter case is rejected: ${path}`, async (t) => {
      for (const misspelt of otherCases(path)) {
        const [method = ''] = own
        const exchange = await request(pathOf(misspelt), { method, headers: signedIn })

        t.same(summary(exchange), rejectedWith(400, 'AMBIGUOUS_PATH'), misspelt)
      }
    })
  }
})

/** Variants of a path template, each with one fixed segment capitalised. */
function otherCases(template: string): string[] {
  const segments = template.split('/')
  return segments.flatMap((segment, index) =>
    /^[a-z]/.test(segment) ? [segments.with(index, segment.charAt(0).toUpperCase() + segment.slice(1)).join('/')] : []
  )
}
