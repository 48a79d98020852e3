import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { SettingsError } from '../../../src/shared/env.js'
import { eventually } from '../../helper/eventually.js'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'

type Json = Readonly<Record<string, unknown>>

const gatewayFor = (
  t: Test,
  paths: Json | string,
  components: Json = {},
  openapi = '3.1.0',
  env: Readonly<Record<string, string>> = {}
): Promise<TestGateway> => {
  const file = join(t.testdir({}), typeof paths === 'string' ? 'openapi.yaml' : 'openapi.json')
  writeFileSync(file, typeof paths === 'string' ? paths : JSON.stringify({ openapi, paths, components }))
  return startGateway(t, { env: { ...env, GATEWAY_ROUTES: file } })
}

const json = (schema: unknown) => ({ post: { requestBody: { content: { 'application/json': { schema } } } } })

const post = async ({ send }: TestGateway, body: string) => {
  const headers = { ...browserHeaders(), 'content-type': 'application/json' }
  const { status, body: text } = await send('/api/x', { method: 'POST', headers, body })
  return { status, details: status === 400 ? JSON.parse(text).error.details : null }
}

const nested = (depth: number, open: string, close: string, inner = ''): string =>
  open.repeat(depth) + inner + close.repeat(depth)

t.test('a recursive schema accepts nested bodies and rejects those that are nested too deeply', async (t) => {
  const schemas = { Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } } }
  const gateway = await gatewayFor(t, { '/x': json({ $ref: '#/components/schemas/Node' }) }, { schemas })

  t.equal((await post(gateway, nested(50, '{"next":', '}', '{}'))).status, 200)
  t.same((await post(gateway, nested(50, '{"next":', '}', '1'))).details, [
    { path: '/next'.repeat(50), message: 'must be object' }
  ])
  t.same((await post(gateway, nested(100_000, '{"next":', '}', '{}'))).details, [
    { path: '', message: 'is nested too deeply' }
  ])
  t.equal((await gateway.send('/api/health')).status, 200)
})

t.test('a body whose validation would take exponential time is rejected', async (t) => {
  const next = { $ref: '#/components/schemas/Node' }
  const branches = ['a', 'b'].map((kind) => ({ type: 'object', properties: { next, kind: { const: kind } } }))
  const schemas = { Node: { oneOf: [...branches, { type: 'null' }] } }
  const gateway = await gatewayFor(t, { '/x': json(next) }, { schemas })

  t.equal((await post(gateway, nested(3, '{"kind":"b","next":', '}', 'null'))).status, 200)
  t.same((await post(gateway, nested(60, '{"kind":"b","next":', '}', 'null'))).details, [
    { path: '', message: 'takes too long to validate' }
  ])
})

/** Patterns that keep V8 busy for longer than any test may take, each with a text that almost matches. */
const BACKTRACKING: readonly (readonly [pattern: string, text: string])[] = [
  ['^(a+)+$', `${'a'.repeat(60)}!`],
  ['^\\w+\\s?\\w*\\s?\\w*\\s?\\w*\\s?\\w*\\s?\\w*$', `${'a'.repeat(250)}!`],
  ['^.*,.*,.*,.*,.*;$', `${','.repeat(250)}!`],
  ['^(?=(a+)+$)a', `${'a'.repeat(60)}!`]
]

t.test('a pattern that backtracks costs no more than another one', async (t) => {
  const parameters = Array.from({ length: 20 }, (_, index) => ({
    name: `p${index}`,
    in: 'query',
    schema: { type: 'string', pattern: BACKTRACKING[index % BACKTRACKING.length]?.[0] }
  }))
  const properties = {
    trailing: { type: 'string', pattern: '\\s+$' },
    list: { type: 'array', items: { type: 'string', pattern: '^(a+)+$' } }
  }
  const gateway = await gatewayFor(t, { '/x': { parameters, get: {}, ...json({ type: 'object', properties }) } })
  const query = parameters.map(({ name }, index) => `${name}=${BACKTRACKING[index % BACKTRACKING.length]?.[1]}`)

  t.equal((await gateway.send('/api/x?p0=aaaa&p1=a%20b&p2=,,,,;&p3=aaa')).status, 200)
  const rejected = await gateway.send(`/api/x?${query.join('&')}`)
  t.equal(rejected.status, 400)
  t.equal(JSON.parse(rejected.body).error.details.length, 20)
  t.equal((await post(gateway, JSON.stringify({ trailing: 'x ', list: ['a'] }))).status, 200)
  // A busy machine may need more than the time that a validation has.
  const [detail] = (await post(gateway, JSON.stringify({ trailing: `${' '.repeat(900_000)}x` }))).details
  t.ok(detail?.path === '/trailing' || detail?.message === 'takes too long to validate')
  t.match((await post(gateway, JSON.stringify({ list: Array(5000).fill(`${'a'.repeat(60)}!`) }))).details, [
    { path: '/list/0', message: 'must match pattern "^(a+)+$"' }
  ])
})

/** Long texts that almost have the format. In quadratic time, each would take longer than any test may. */
const ALMOST: readonly (readonly [format: string, start: string, repeated: string])[] = [
  ['url', 'http://', ':'],
  ['url', 'http://', 'a.a@'],
  ['uri', 'http://', 'a@'],
  ['uri-reference', '//', '%20'],
  ['uri-template', '', '{a,'],
  ['email', 'a@', 'a-a.'],
  ['hostname', '', 'a-'],
  ['ipv6', '', 'ffff:'],
  ['date-time', '2020-01-01T00:00:00.', '0'],
  ['time', '00:00:00.', '0'],
  ['duration', 'P', '1'],
  ['uuid', '', 'a'],
  ['json-pointer', '', '/~0'],
  ['regex', '', '(a|'],
  ['byte', '', 'AAAA']
]

t.test('formats take linear time', async (t) => {
  const properties = Object.fromEntries(ALMOST.map(([format], index) => [`p${index}`, { type: 'string', format }]))
  const gateway = await gatewayFor(t, { '/x': json({ type: 'object', properties }) })
  for (const [index, [format, start, repeated]] of ALMOST.entries()) {
    const text = `${start}${repeated.repeat(900_000 / repeated.length)}~\u0001`
    t.match(await post(gateway, JSON.stringify({ [`p${index}`]: text })), { status: 400 }, format)
  }
})

/** Letters without a period, for which the engine needs a new state at almost every one. */
const irregular = (length: number): string => {
  let state = 1
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647
    return state % 3 === 0 ? 'a' : 'b'
  }).join('')
}

t.test('large patterns in long texts, and in many texts, are interrupted', async (t) => {
  const pattern = '^[ab]*a[ab]{900}$|^[ab]*a[ab]{100}'
  const schema = { type: 'array', items: { type: 'string', pattern } }
  const gateway = await gatewayFor(t, { '/x': json(schema) })
  const tooLong = [{ path: '', message: 'takes too long to validate' }]

  t.same((await post(gateway, JSON.stringify([`${irregular(900_000)}!`]))).details, tooLong)
  const short = JSON.stringify([`a${'b'.repeat(900)}`])
  // The time limit may end while another process has the processor.
  await eventually(async () => (await post(gateway, short)).details === null, { label: 'it still works' })
  const letters = irregular(500_000)
  // Each of them alone takes some milliseconds.
  const texts = Array.from({ length: 1000 }, (_, index) => letters.slice(index * 500, (index + 1) * 500))
  t.same((await post(gateway, JSON.stringify(texts))).details, tooLong)
  t.equal((await gateway.send('/api/health')).status, 200)
})

t.test('the parts of a request have one limit together', async (t) => {
  const list = { type: 'array', items: { $ref: '#/components/schemas/Item' } }
  const inQuery = (name: string) => ({ name, in: 'query', content: { 'application/json': { schema: list } } })
  const path = { parameters: [inQuery('one'), inQuery('other')], get: {}, ...json(list) }
  const schemas = { Item: { type: 'integer' } }
  const gateway = await gatewayFor(t, { '/x': path }, { schemas }, '3.1.0', { BODY_LIMIT: '1000' })
  // Of 200 evaluations, one in 5 bytes of BODY_LIMIT.
  const items = JSON.stringify(Array(120).fill(1))
  const rejection = { status: 400, body: /takes too long to validate/ }

  t.equal((await gateway.send(`/api/x?one=${items}`)).status, 200)
  t.match(await gateway.send(`/api/x?one=${items}&other=${items}`), rejection)
  const headers = { ...browserHeaders(), 'content-type': 'application/json' }
  t.equal((await gateway.send('/api/x', { method: 'POST', headers, body: items })).status, 200)
  t.match(await gateway.send(`/api/x?one=${items}`, { method: 'POST', headers, body: items }), rejection)
})

t.test('uniqueItems and enum take no quadratic time', async (t) => {
  const values = Array.from({ length: 100_000 }, (_, index) => `value-${index}`)
  const schema = { type: 'array', uniqueItems: true, items: { properties: { kind: { enum: values } } } }
  const gateway = await gatewayFor(t, { '/x': json(schema) })
  const items = values.slice(0, 30_000).map((kind) => ({ kind }))

  t.equal((await post(gateway, JSON.stringify(items))).status, 200)
  t.same(
    (
      await post(
        gateway,
        JSON.stringify([
          { a: 1, b: [{}] },
          { b: [{}], a: 1 }
        ])
      )
    ).details,
    [{ path: '', message: 'must not have equal entries' }]
  )
  t.same((await post(gateway, '[1,"1",true,"true",null,[],{}]')).details, null)
  t.match((await post(gateway, '[{"kind":"other"}]')).details, [
    { path: '/0/kind', message: /^must be one of "value-0", .* and 99990 more$/ }
  ])
})

t.test('names that objects inherit are names like others', async (t) => {
  const names = ['constructor', 'toString', 'hasOwnProperty', '__proto__']
  const parameters = names.map((name) => ({ name, in: 'query', schema: { type: 'integer' } }))
  const properties = JSON.parse('{"constructor":{"type":"integer"},"__proto__":{"type":"integer"}}')
  const path = { parameters, get: {}, ...json({ type: 'object', properties, required: ['toString'] }) }
  const gateway = await gatewayFor(t, { '/x': path, '/__proto__/{constructor}': { get: {} } })

  t.equal((await gateway.send('/api/x')).status, 200)
  for (const name of names) t.equal((await gateway.send(`/api/x?${name}=a`)).status, 400, name)
  t.equal((await post(gateway, '{"toString":1}')).status, 200)
  t.same((await post(gateway, '{}')).details, [{ path: '/toString', message: 'is required' }])
  t.equal((await post(gateway, '{"toString":1,"constructor":"x"}')).status, 400)
  t.equal((await gateway.send('/api/__proto__/7')).status, 200)
})

t.test('templates that match the same path are served by the one with more text', async (t) => {
  const id = (type: string) => [{ name: 'id', in: 'path', required: true, schema: { type } }]
  const { send } = await gatewayFor(t, {
    '/files/{id}': { get: { parameters: id('integer') } },
    '/files/{id}.json': { get: { parameters: id('boolean') } },
    '/files/latest': { get: {} },
    '/files/{id}:cancel': { get: { parameters: id('integer') } },
    '/range/{from}-{to}': { get: {} },
    '/caf%C3%A9/{id}': { get: { parameters: id('integer') } },
    '/größe/{id}': { get: { parameters: id('integer') } }
  })
  const status = async (path: string) => (await send(path)).status

  for (const path of ['7', 'true.json', 'latest', '7:cancel']) t.equal(await status(`/api/files/${path}`), 200, path)
  for (const path of ['x', '7.json', 'x:cancel']) t.equal(await status(`/api/files/${path}`), 400, path)
  t.equal(await status('/api/range/1-5'), 200)
  for (const path of ['caf%C3%A9', 'gr%C3%B6%C3%9Fe']) {
    t.equal(await status(`/api/${path}/7`), 200, path)
    t.equal(await status(`/api/${path}/x`), 400, path)
  }
})

t.test('an encoded path parameter is validated as the text that it stands for', async (t) => {
  const parameters = [{ name: 'id', in: 'path', required: true, schema: { type: 'string', enum: ['a b', 'ä'] } }]
  const { send, backend } = await gatewayFor(t, { '/x/{id}': { parameters, get: {} } })

  t.equal((await send('/api/x/a%20b')).status, 200)
  t.equal((await send('/api/x/%C3%A4')).status, 200)
  t.equal((await send('/api/x/a+b')).status, 400)
  t.equal((await send('/api/x/%2561')).status, 400)
  t.same(
    backend.requests.map(({ url }) => url),
    ['/api/x/a%20b', '/api/x/%C3%A4']
  )
})

t.test('parameters with other styles are forwarded without validation, delimited lists are validated', async (t) => {
  const list = { type: 'array', items: { type: 'integer' } }
  const { send } = await gatewayFor(t, {
    '/x': {
      get: {
        parameters: [
          { name: 'deep', in: 'query', style: 'deepObject', schema: { type: 'object' } },
          { name: 'odd', in: 'query', style: 'made-up', schema: { type: 'integer' } },
          { name: 'space', in: 'query', style: 'spaceDelimited', explode: false, schema: list },
          { name: 'pipe', in: 'query', style: 'pipeDelimited', explode: false, schema: list },
          { name: 'json', in: 'query', content: { 'application/json': { schema: { type: 'object' } } } },
          { name: 'csv', in: 'query', content: { 'text/csv': {} } },
          { name: 'X-Header', in: 'header', required: true, schema: { type: 'integer' } },
          { name: 'empty', in: 'query', allowEmptyValue: true, schema: { type: 'integer' } }
        ]
      }
    },
    '/matrix/{id}': { get: { parameters: [{ name: 'id', in: 'path', style: 'matrix', schema: { type: 'integer' } }] } }
  })
  const status = async (query: string) => (await send(`/api/x?${query}`)).status

  for (const query of [
    'deep[a]=1',
    'odd=x',
    'space=1%202',
    'pipe=1|2',
    'pipe=1%7C2',
    'json={}',
    'csv=a,b',
    'empty=',
    'empty'
  ])
    t.equal(await status(query), 200, query)
  for (const query of ['space=1,2', 'pipe=1|x', 'json=[]', 'json=%7B', 'empty=x', 'json={}&json={}'])
    t.equal(await status(query), 400, query)
  t.equal((await send('/api/matrix/=id')).status, 200)
})

t.test('keywords of the validator in a document have no effect', async (t) => {
  const schema = {
    $async: true,
    $id: 'x',
    $anchor: 'y',
    definition: 'any',
    counted: false,
    type: 'integer',
    $comment: 1
  }
  const gateway = await gatewayFor(t, { '/x': json(schema) })

  t.equal((await post(gateway, '1')).status, 200)
  t.equal((await post(gateway, '"x"')).status, 400)
})

t.test('unevaluatedProperties sees the properties of references', async (t) => {
  const schemas = {
    Base: { type: 'object', properties: { id: { type: 'integer' } } },
    Node: { properties: { next: { $ref: '#/components/schemas/Node' } }, type: ['object', 'null'] }
  }
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Base' }],
    properties: { tree: { $ref: '#/components/schemas/Node' } },
    unevaluatedProperties: false
  }
  const gateway = await gatewayFor(t, { '/x': json(schema) }, { schemas })

  t.equal((await post(gateway, '{"id":1,"tree":{"next":{"next":null}}}')).status, 200)
  t.same((await post(gateway, '{"id":1,"other":2}')).details, [{ path: '/other', message: 'is not a field of this' }])
})

t.test('a YAML document whose aliases stand for millions of schemas is rejected', async (t) => {
  const levels = Array.from({ length: 25 }, (_, level) => {
    const alias = level === 0 ? '{ type: string }' : `{ properties: { a: *l${level - 1}, b: *l${level - 1} } }`
    return `  l${level}: &l${level} ${alias}`
  })
  const text = [
    'openapi: 3.1.0',
    'x-levels:',
    ...levels,
    'paths:',
    '  /x: { post: { requestBody: { content: { application/json: { schema: *l24 } } } } }'
  ].join('\n')

  await t.rejects(gatewayFor(t, text), SettingsError)
})

t.test('a long name in a body is not repeated in the response', async (t) => {
  const gateway = await gatewayFor(t, { '/x': json({ type: 'object', additionalProperties: false }) })

  t.same((await post(gateway, JSON.stringify({ ['x'.repeat(500_000)]: 1 }))).details, [
    { path: '', message: 'has a name that is too long' }
  ])
})
