import t from 'tap'
import { routeTables } from '../../../src/gateway/routes/index.js'
import { post, type RouteDeclaration, upload } from '../../../src/gateway/routes/tables/declare.js'
import { specifiedDomains, specifiedUploads, specifiedWithoutMethods } from './specified-routes.js'

// Declared routes that are not in the specification, and why.
const EXTRA: readonly (readonly [reason: string, domain: string, routes: readonly string[]])[] = [
  [
    'settings accept every method, and the backend decides',
    'management',
    ['/api/mgmt/settings', '/api/mgmt/settings/ble', '/api/mgmt/settings/alerts', '/api/mgmt/settings/general'].flatMap(
      (path) => ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} ${path}`)
    )
  ],
  ['a check of the database only reads', 'health', ['GET /api/health/database']],
  ['an exported file can be imported again', 'personnel', ['POST /api/personnel/import']],
  ['a login page lists the identity providers', 'auth', ['GET /api/auth/providers']],
  ['liveness and readiness of the gateway', 'health', ['GET /api/health', 'GET /api/health/ready']]
]

const rows: readonly RouteDeclaration[] = routeTables.flatMap((table) => table.rows)
const writes = rows.filter(({ method }) => method !== 'GET')

/** In the notation of the specification. */
const nameOf = ({ method, path }: RouteDeclaration): string => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`

const without = (names: readonly string[], others: readonly string[]): string[] =>
  names.filter((name) => !others.includes(name))

t.test('the route tables', async (t) => {
  const domains = new Set([...specifiedDomains, ...specifiedWithoutMethods].map(({ domain }) => domain))

  t.test('there is one route table per specified domain', async (t) => {
    t.same(routeTables.map(({ domain }) => domain).toSorted(), [...domains].toSorted())
  })

  for (const domain of domains) {
    const declared = routeTables.filter((table) => table.domain === domain).flatMap((table) => table.rows.map(nameOf))
    const specified = specifiedDomains.filter((entry) => entry.domain === domain).flatMap(({ routes }) => routes)
    const extra = EXTRA.filter(([, domainName]) => domainName === domain).flatMap(([, , routes]) => routes)

    if (specified.length > 0)
      t.test(`the table of ${domain} has all ${specified.length} specified routes`, async (t) => {
        t.same(without(specified, declared), [])
      })

    t.test(`the table of ${domain} has no unspecified routes except those listed here`, async (t) => {
      t.same(without(declared, [...specified, ...extra]), [])
    })
  }

  for (const [reason, domain, extra] of EXTRA) {
    t.test(`the table of ${domain} has ${extra.length} additional routes: ${reason}`, async (t) => {
      t.same(without(extra, rows.map(nameOf)), [])
    })
  }

  t.test('every path that is specified without methods is declared', async (t) => {
    const paths = rows.map(({ path }) => path)
    t.same(
      without(
        specifiedWithoutMethods.flatMap(({ routes }) => routes),
        paths
      ),
      []
    )
  })

  t.test('no two routes have the same method and path, regardless of parameter names', async (t) => {
    const shapes = rows.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`)
    t.same(
      shapes.filter((shape, index) => shapes.indexOf(shape) !== index),
      []
    )
  })

  t.test('all declared paths are canonical', async (t) => {
    t.same(
      rows.map(({ path }) => path).filter((path) => !/^\/api(?:\/(?:[a-z]+(?:-[a-z]+)*|:[a-z][A-Za-z]*))+$/.test(path)),
      []
    )
  })

  t.test('every table has a description and every route a summary', async (t) => {
    for (const { domain, about } of routeTables) t.match(about, /^[A-Z][^.]+$/, domain)
    for (const row of rows) t.match(row.summary, /^[A-Z][^.]+$/, nameOf(row))
  })

  t.test('exactly the specified routes and the import are uploads', async (t) => {
    const uploads = rows.filter(({ kind }) => kind === 'upload').map(nameOf)
    t.same(uploads.toSorted(), [...specifiedUploads, 'POST /api/personnel/import'].toSorted())
  })

  t.test('every write request except uploads has a named schema', async (t) => {
    const nameless = writes.filter(({ kind, body }) => kind !== 'upload' && !body?.$id).map(nameOf)
    t.same(nameless, [])
  })

  t.test('schema names are unique', async (t) => {
    for (const { body } of writes) {
      const namesakes = writes.filter((other) => other.body?.$id === body?.$id).map((other) => other.body)
      t.equal(new Set(namesakes).size, 1, body?.$id ?? 'upload')
    }
  })

  t.test('reads have no body schema', async (t) => {
    const reads = rows.filter(({ method }) => method === 'GET')
    t.same(reads.filter(({ body, bodyOptional }) => body !== null || bodyOptional).map(nameOf), [])
  })

  t.test('deletions and actions have an optional body', async (t) => {
    t.same(
      writes
        .filter(({ method, bodyOptional }) => method !== 'DELETE' && bodyOptional)
        .map(nameOf)
        .toSorted(),
      [
        'POST /api/auth/logout',
        'POST /api/negotiate',
        'POST /api/users/{id}/reset-password',
        'POST /api/users/{id}/unlock',
        'POST /api/weather/refresh'
      ]
    )
    t.same(writes.filter(({ method, bodyOptional }) => method === 'DELETE' && !bodyOptional).map(nameOf), [])
  })

  t.test('only session and health routes have local handlers', async (t) => {
    t.same(
      rows
        .filter(({ kind }) => kind === 'local')
        .map(nameOf)
        .toSorted(),
      [
        'GET /api/auth/csrf-token',
        'GET /api/auth/providers',
        'GET /api/health',
        'GET /api/health/database',
        'GET /api/health/ready',
        'POST /api/auth/backend-login',
        'POST /api/auth/login',
        'POST /api/auth/logout'
      ]
    )
  })
})

t.test('a write request without a schema does not compile', async (t) => {
  const base = { path: '/api/zones', summary: 'Create a zone', bodyOptional: false } as const
  const byHand: readonly RouteDeclaration[] = [
    // @ts-expect-error: a write request needs a body schema
    { ...base, method: 'POST', kind: 'json', body: null },
    // @ts-expect-error: an upload needs a form schema
    { ...base, method: 'POST', kind: 'upload', body: null }
  ]
  // @ts-expect-error: the body schema is missing
  const posted = post('/api/zones', 'Create a zone')
  // @ts-expect-error: the form schema is missing
  const uploaded = upload('/api/zones/:id/plan', 'Upload a plan')

  t.same(
    [...byHand, posted, uploaded].filter(({ method }) => method === 'GET'),
    []
  )
})
