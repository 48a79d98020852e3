import { isDeepStrictEqual } from 'node:util'
import type { TSchema } from '@sinclair/typebox'
import fc from 'fast-check'
import t from 'tap'
import { routeTables } from '../../../src/gateway/routes/index.js'
import type { RouteDeclaration } from '../../../src/gateway/routes/tables/declare.js'
import { browserHeaders, startGateway, tokenOf } from '../../helper/gateway.js'
import { checkProperty } from '../../helper/property.js'
import { choicesOf, propertiesOf } from '../../helper/schema.js'

const rows = routeTables.flatMap((table) => table.rows)

const pathOf = ({ path }: RouteDeclaration): string => path.replace(/:\w+/g, '7')

// Random code units, so that lone surrogates and control characters occur.
const codeUnits = fc.oneof(
  fc.integer({ min: 0x20, max: 0x7e }),
  fc.integer({ min: 0, max: 0xffff }),
  fc.constantFrom(0x22, 0x5c, 0x2f, 0x2028, 0xd83d, 0xdd11, 0xfeff)
)
const textOf = (minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.array(codeUnits, { minLength, maxLength }).map((units) => String.fromCharCode(...units)),
    fc.string({ unit: 'grapheme', minLength, maxLength }).filter(({ length }) => length <= maxLength)
  )

// Without __proto__, which is rejected and tested elsewhere.
const keys = fc
  .oneof(textOf(0, 8), fc.constantFrom('constructor', 'toString', 'toJSON', 'hasOwnProperty', '0', 'length', ''))
  .filter((key) => key !== '__proto__' && key !== 'prototype')

// Whole numbers are exact, or so large that they are written with an exponent.
const numbers = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
  fc.constantFrom(0, -0, 1e21, -1.5e300, Number.MAX_VALUE, Number.MIN_VALUE)
)

const { anyJson } = fc.letrec<{ anyJson: unknown }>((tie) => ({
  anyJson: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    numbers,
    textOf(0, 12),
    fc.array(tie('anyJson'), { maxLength: 4 }),
    fc.dictionary(keys, tie('anyJson'), { maxKeys: 4, noNullPrototype: true })
  )
}))

const MOST_CHARACTERS = 24
const MOST_ITEMS = 4

/** Values that a schema accepts, with unknown fields for open objects. */
const valuesOf = (schema: TSchema): fc.Arbitrary<unknown> => {
  if (schema.anyOf) return fc.oneof(...choicesOf(schema).map(valuesOf))
  if (schema.const !== undefined) return fc.constant(schema.const)
  const { minimum, maximum, minLength = 0, maxLength, pattern } = schema
  switch (schema.type) {
    case 'string':
      return pattern === undefined
        ? textOf(minLength, Math.min(maxLength, MOST_CHARACTERS))
        : fc.stringMatching(new RegExp(pattern)).filter(({ length }) => length >= minLength && length <= maxLength)
    case 'integer':
      return fc.integer({ min: minimum, max: maximum })
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(valuesOf(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems, MOST_ITEMS)
      })
    case 'object':
      return objectsOf(schema)
    default:
      throw new Error(`no values for ${JSON.stringify(schema)}`)
  }
}

/** A forbidden field. */
const isForbidden = (schema: TSchema): boolean => schema.not !== undefined

const objectsOf = (schema: TSchema): fc.Arbitrary<Record<string, unknown>> => {
  const properties = propertiesOf(schema)
  const named = Object.fromEntries(
    properties.filter(([, part]) => !isForbidden(part)).map(([name, part]) => [name, valuesOf(part)])
  )
  const known = fc.record(named, { requiredKeys: schema.required ?? [], noNullPrototype: true })
  const unknown = fc.dictionary(
    keys.filter((key) => !properties.some(([name]) => name === key)),
    anyJson,
    { maxKeys: schema.additionalProperties === true ? 4 : 0, noNullPrototype: true }
  )
  return fc
    .tuple(known, unknown)
    .map(([fields, others]): Record<string, unknown> => ({ ...others, ...fields }))
    .filter((value) => Object.keys(value).length >= (schema.minProperties ?? 0))
}

/** JSON in a random style. */
const written = (values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.tuple(values, fc.constantFrom('', '', ' ', '\t')).map(([value, indent]) => JSON.stringify(value, null, indent))

// Different structures: lists, lists of objects, points, patterns, nested groups, with and without required fields. A login has
// rules beyond its schema.
const CHECKED = [
  'POST /api/zones',
  'PUT /api/zones/:id',
  'DELETE /api/zones/:id',
  'POST /api/users',
  'PUT /api/buildings/order',
  'POST /api/floors/:floorId/calibrate',
  'POST /api/personnel/batch-delete',
  'POST /api/emergency/trigger',
  'POST /api/transmitters/bulk',
  'PATCH /api/transmitters/:id',
  'POST /api/phone-beacon/complete-enrollment',
  'PUT /api/mgmt/settings',
  'POST /api/negotiate',
  'POST /api/proxy/error-log'
]

t.test('every value that a schema accepts is forwarded unchanged', async (t) => {
  const { send, backend } = await startGateway(t, { hasAllRoutes: true, env: { TRUST_PROXY: 'loopback' } })
  const headers = { ...browserHeaders(), 'content-type': 'application/json' }
  let clients = 0

  for (const name of CHECKED) {
    t.test(`${name} forwards every value that its schema accepts unchanged`, async (t) => {
      const row = rows.find(({ method, path }) => `${method} ${path}` === name)
      if (row?.body == null) throw new Error('there is no such route')
      const path = pathOf(row)

      const property = fc.asyncProperty(written(objectsOf(row.body)), async (body) => {
        backend.requests.length = 0
        clients += 1
        const response = await send(path, {
          method: row.method,
          // From a different address each time, so that the login limit does not apply.
          headers: { ...headers, 'x-forwarded-for': `10.0.${clients >> 8}.${clients & 255}` },
          body
        })
        const arrived = backend.requests.map((request) => JSON.parse(request.body))
        if (response.status !== 200) throw new Error(`answered ${response.status} ${response.body}`)
        if (!isDeepStrictEqual(arrived, [JSON.parse(body)])) throw new Error(`arrived as ${JSON.stringify(arrived)}`)
      })

      await checkProperty(t, property, { numRuns: 30 })
    })
  }
})

const methods = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE') },
  fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'LOCK')
)

/** Valid characters of a request line. The HTTP parser rejects others. */
const sendable = (text: string): string => text.replace(/[^\x21-\x7e]/g, '')

const queries = fc.oneof(
  fc.constant(''),
  fc.constantFrom('?', '?a=1&a=2', '?a[]=%zz', '?__proto__=1', '?%00', '?a=%2e%2e%2f'),
  textOf(0, 12).map((text) => `?${sendable(text).replaceAll('#', '')}`)
)

const segments = fc.oneof(
  fc.constantFrom('7', 'AA:BB', 'a%20b', '..', '.', '', '%2e', '%2F', '%zz', '%', '%C3%A9', ';x', '\\', '*', ':id'),
  fc.string({ maxLength: 12 }).map(encodeURIComponent),
  textOf(0, 8).map(sendable),
  fc.integer({ min: 500, max: 600 }).map((length) => 'x'.repeat(length))
)

const paths = fc.oneof(
  fc
    .tuple(fc.constantFrom(...rows), segments)
    .map(([{ path }, segment]) => path.replace(/:\w+/g, () => segment.replaceAll('#', ''))),
  fc.tuple(fc.constantFrom(...rows), segments).map(([row, segment]) => `${pathOf(row)}/${segment}`),
  fc
    .tuple(fc.constantFrom('/', '/api/', '/api/admin/', '/api/unknown/'), fc.array(segments, { maxLength: 4 }))
    .map(([start, parts]) => start + parts.join('/')),
  fc.constantFrom(
    '*',
    '/api',
    '/metrics',
    '/api/dev-login',
    '/api/docs',
    'http://other.example/api/zones',
    '//api/zones'
  )
)

const headerValues = textOf(0, 12).map((text) => text.replace(/[^\x20-\x7e\x80-\xff]/g, ''))

/** Mostly requests that pass the first checks, so that later ones are tested too. */
const mostly = (usual: string, ...others: string[]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 14, arbitrary: fc.constant(usual) },
    { weight: 2, arbitrary: fc.constantFrom(...others) },
    headerValues
  )

const token = tokenOf('operator')
const usualHeaders = fc.record({
  cookie: mostly(
    `auth_token=${token}; csrf_token=t0ken`,
    `auth_token=${tokenOf('admin')}; csrf_token=t0ken`,
    `auth_token=${encodeURIComponent(`"${token}"`)}; csrf_token=t0ken`,
    'auth_token=null; csrf_token=t0ken',
    'auth_token=a.b.c; csrf_token=t0ken',
    'auth_token=YQ==.00; csrf_token=t0ken',
    'auth_token=%zz; auth_token=%00; csrf_token=%',
    '=;;=; auth_token; csrf_token=t0ken; __proto__=1'
  ),
  'x-csrf-token': mostly('t0ken', 'T0ken', ''),
  'content-type': mostly(
    'application/json',
    'application/json; charset=utf-16',
    'APPLICATION/JSON;',
    'application/json, text/plain',
    'multipart/form-data; boundary=x',
    'multipart/form-data',
    'text/plain',
    '*/*',
    '__proto__',
    ';',
    ''
  ),
  // Many different addresses, so that few reach the login limit.
  'x-forwarded-for': fc.oneof(fc.ipV4(), fc.ipV6(), headerValues)
})

const rareHeaders = fc.uniqueArray(
  fc.oneof(
    fc.tuple(fc.constant('content-encoding'), fc.constantFrom('gzip', 'identity', '')),
    fc.tuple(fc.constant('authorization'), fc.oneof(fc.constant('Bearer null'), headerValues)),
    fc.tuple(fc.constant('origin'), fc.constantFrom('null', 'http://', 'https://evil.example', '')),
    fc.tuple(fc.constant('sec-fetch-site'), fc.constantFrom('same-origin', 'cross-site', 'x')),
    fc.tuple(fc.constant('connection'), fc.constantFrom('close', 'authorization, x-request-id', ',', 'upgrade')),
    fc.tuple(fc.constant('upgrade'), fc.constantFrom('h2c', 'websocket')),
    fc.tuple(fc.constant('te'), fc.constantFrom('trailers', 'x')),
    fc.tuple(fc.constant('x-http-method-override'), fc.constantFrom('DELETE', '')),
    fc.tuple(
      fc.constantFrom('x-forwarded-proto', 'x-forwarded-host', 'x-request-id', 'traceparent', 'accept', 'range', 'x_y'),
      headerValues
    )
  ),
  { maxLength: 2, selector: ([name]) => name }
)

const headers = fc
  .tuple(usualHeaders, rareHeaders)
  .map(([usual, rare]): Record<string, string> => ({ ...usual, ...Object.fromEntries(rare) }))

/** Text with a part replaced. */
const mutated = (texts: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(
      texts,
      fc.nat(),
      fc.nat(4),
      fc.constantFrom('"', '\\', '{', '}', '[', ']', ',', ':', '0', '1e999', '\0', '\ufeff')
    )
    .map(([text, position, length, piece]) => {
      const start = position % (text.length + 1)
      return text.slice(0, start) + piece + text.slice(start + length)
    })

/** A valid body, possibly damaged. */
const maybeDamaged = (values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.oneof(written(values), mutated(written(values)))

type Body = string | Buffer | undefined

const bodies: fc.Arbitrary<Body> = fc.oneof(
  fc.constantFrom(undefined, ''),
  maybeDamaged(anyJson),
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes))
)

interface Target {
  readonly method: string
  readonly path: string
  readonly body: Body
}

/** Valid, invalid and malformed bodies of a route. */
const bodiesFor = ({ body }: RouteDeclaration): fc.Arbitrary<Body> =>
  body === null ? bodies : fc.oneof(maybeDamaged(objectsOf(body)), { weight: 2, arbitrary: written(anyJson) }, bodies)

const targets: fc.Arbitrary<Target> = fc.oneof(fc.record({ method: methods, path: paths, body: bodies }), {
  weight: 2,
  arbitrary: fc.constantFrom(...rows).chain((row) =>
    fc.record<Target>({
      method: fc.oneof({ weight: 4, arbitrary: fc.constant(row.method) }, methods),
      path: fc.constant(pathOf(row)),
      body: bodiesFor(row)
    })
  )
})

const SECURITY_HEADERS: Readonly<Record<string, string | RegExp>> = {
  'content-security-policy': /^default-src 'self';/,
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'geolocation=(self), microphone=(), camera=(), payment=()'
}

t.test('no request causes an INTERNAL error', async (t) => {
  const { send, logs } = await startGateway(t, { hasAllRoutes: true, env: { TRUST_PROXY: 'loopback' } })
  const lacking = (headers: NodeJS.Dict<string | string[]>): string[] =>
    Object.entries(SECURITY_HEADERS).flatMap(([name, value]) => {
      const received = headers[name]
      return typeof received === 'string' && (typeof value === 'string' ? received === value : value.test(received))
        ? []
        : [name]
    })
  const responses = new Map<string, number>()

  const property = fc.asyncProperty(targets, queries, headers, async ({ method, path, body }, query, headers) => {
    const response = await send(`${path}${query}`, { method, headers, ...(body !== undefined && { body }) })
    const kind = `${response.status} ${response.headers['x-gateway-error'] ?? ''}`
    responses.set(kind, (responses.get(kind) ?? 0) + 1)
    if (response.status >= 500) throw new Error(`answered ${kind}`)
    const missing = lacking(response.headers)
    if (missing.length > 0) throw new Error(`answered ${kind} without ${missing}`)
  })

  // Also a fifth of them contain each kind of response below.
  await checkProperty(t, property, { numRuns: 2_500 })
  t.same(
    logs.filter(({ level }) => Number(level) >= 50),
    [],
    'nor is one logged'
  )
  for (const kind of ['200 ', '400 AMBIGUOUS_PATH', '400 MALFORMED_BODY', '400 VALIDATION_FAILED', '403 CSRF_MISMATCH'])
    t.ok((responses.get(kind) ?? 0) > 0, `some were answered ${kind}`)
})
