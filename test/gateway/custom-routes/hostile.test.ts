import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { SettingsError } from '../../../src/shared/env.js'
import { browserHeaders, startGateway, type TestGateway } from '../../helper/gateway.js'

type Json = Readonly<Record<string, unknown>>

const gatewayFor = (t: Test, paths: Json | string, components: Json = {}, openapi = '3.1.0'): Promise<TestGateway> => {
  const file = join(t.testdir({}), typeof paths === 'string' ? 'openapi.yaml' : 'openapi.json')
  writeFileSync(file, typeof paths === 'string' ? paths : JSON.stringify({ openapi, paths, components }))
  return startGateway(t, { env: { GATEWAY_ROUTES: file } })
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

t.test('a pattern that backtracks exponentially, or in a long text, does not stop the gateway', async (t) => {
  const properties = {
    nested: { type: 'string', pattern: '^(a+)+$' },
    trailing: { type: 'string', pattern: '\\s+$' },
    list: { type: 'array', items: { type: 'string', pattern: '^(a+)+$' } }
  }
  const gateway = await gatewayFor(t, { '/x': json({ type: 'object', properties }) })
  const tooLong = [{ path: '', message: 'takes too long to validate' }]
  const attack = `${'a'.repeat(60)}!`

  t.equal((await post(gateway, JSON.stringify({ nested: 'aaaa', trailing: 'x ', list: ['a'] }))).status, 200)
  t.same((await post(gateway, JSON.stringify({ nested: attack }))).details, tooLong)
  t.same((await post(gateway, JSON.stringify({ trailing: `${' '.repeat(900_000)}x` }))).details, tooLong)
  t.same((await post(gateway, JSON.stringify({ list: Array(1000).fill(attack) }))).details, tooLong)
  t.equal((await gateway.send('/api/health')).status, 200)
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
