import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readRoutesFile } from '../../../src/gateway/custom-routes/custom-routes.js'
import { SettingsError } from '../../../src/shared/env.js'
import { API_SECRET } from '../../helper/gateway.js'
import { startProgram } from '../../helper/program.js'

const PROGRAM = 'dist/src/gateway/main.js'

const written = (t: Test, name: string, content: string | object | null): string => {
  const file = join(t.testdir({}), name)
  if (content !== null) writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const json = (schema: unknown) => ({ requestBody: { content: { 'application/json': { schema } } } })

const DOCUMENT = {
  openapi: '3.1.0',
  paths: {
    '/a/{id}': { get: { 'x-gatehouse-access': 'root', parameters: [{ name: 'x', in: 'query' }] } },
    '/a/{name}': { get: {} },
    '/b': { post: json({ type: 'text', pattern: '(', minLength: -1 }) },
    '/c': { post: json({ $ref: '#/components/schemas/Missing' }) },
    '/d': { post: json({ $ref: 'https://example.com/schema.json' }) },
    '/e?x=1': { get: {} },
    '/f{': { get: {} },
    '/g': { post: { requestBody: {} }, get: { parameters: [{ in: 'path' }, { name: 'y', in: 'body' }] } },
    '/h': { post: json({ $ref: '#/components/schemas/Endless' }) },
    '/i': { post: json({ anyOf: 'x', properties: [], required: 'name', enum: 1, format: 2 }) },
    '/j/{k}': { get: { parameters: [{ name: 'other', in: 'path', schema: {} }] } },
    '/l': { 'x-gatehouse-acces': 'admin', get: { 'X-Gatehouse-Access': 'admin' } },
    '/m': { get: { $ref: '#/components/pathItems/Shared/get' } },
    '/n': { $ref: '#/components/pathItems/Shared', post: {}, 'x-gatehouse-access': 'nobody' },
    '/o': { post: json({ $ref: '#/components/schemas/Behind' }) },
    '/p/{id}': { 'x-gatehouse-secret-path': 'yes', get: {} },
    '/q': { get: { 'x-gatehouse-secret-path': true } },
    'x-gatehouse-access': 'user'
  },
  'x-gatehouse-access': 'user',
  components: {
    schemas: {
      Behind: { properties: { name: { pattern: '(?<=a)b' } }, patternProperties: { '(a)\\1': {} } },
      Endless: { allOf: [{ $ref: '#/components/schemas/Endless' }] }
    },
    pathItems: { Shared: { get: {} } }
  }
}
const MISPLACED =
  'has no effect here, only x-gatehouse-access and x-gatehouse-secret-path of an operation or a path have one'

t.test('all errors of a document are printed, one line each with its location, and the exit code is 1', async (t) => {
  const program = await startProgram(t, PROGRAM, {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: 'http://127.0.0.1:9',
    API_SECRET,
    AUDIT_LOG_FILE: '/dev/null',
    GATEWAY_ROUTES: written(t, 'openapi.json', DOCUMENT)
  })
  const { code } = await program.exited
  const lines = program.stderr.split('\n').filter((line) => line !== '')
  const at = (location: string, message: string) => `gateway: openapi.json#/paths/${location}: ${message}`

  t.equal(code, 1)
  t.match(lines.toSorted(), [
    'gateway: openapi.json#/components/schemas/Behind/patternProperties/(a)\\1: back references and octal escapes are not supported (used by POST /api/o)',
    'gateway: openapi.json#/components/schemas/Behind/properties/name/pattern: look-behind is not supported (used by POST /api/o)',
    'gateway: openapi.json#/components/schemas/Endless: the schema refers to itself for the same value',
    at('x-gatehouse-access', MISPLACED),
    at('~1a~1{id}/get/parameters/0', 'a parameter needs a schema or content'),
    at('~1a~1{id}/get/x-gatehouse-access', 'must be one of public, user, admin'),
    at('~1a~1{name}/get', 'the same method and path as openapi.json#/paths/~1a~1{id}/get'),
    at(
      '~1b/post/requestBody/content/application~1json/schema/minLength',
      'must be a whole number that is not negative'
    ),
    at('~1b/post/requestBody/content/application~1json/schema/pattern', 'Invalid regular expression'),
    at('~1b/post/requestBody/content/application~1json/schema/type', 'type must be one of null, boolean'),
    at('~1c/post/requestBody/content/application~1json/schema', '$ref #/components/schemas/Missing has no target'),
    at('~1d/post/requestBody/content/application~1json/schema', '$ref to a URL is not supported'),
    at('~1e?x=1', 'requests with this path would be rejected'),
    at('~1f{', 'the braces of the path do not match'),
    at('~1g/get/parameters/0', 'a parameter needs a name'),
    at('~1g/get/parameters/1/in', 'must be one of path, query, header, cookie'),
    at('~1g/post/requestBody/content', 'must be an object of media types'),
    at('~1i/post/requestBody/content/application~1json/schema/anyOf', 'must be a list of schemas'),
    at('~1i/post/requestBody/content/application~1json/schema/enum', 'must be a list'),
    at('~1i/post/requestBody/content/application~1json/schema/format', 'must be text'),
    at('~1i/post/requestBody/content/application~1json/schema/properties', 'must be an object of schemas'),
    at('~1i/post/requestBody/content/application~1json/schema/required', 'must be a list of texts'),
    at('~1j~1{k}/get/parameters/0', 'the path has no parameter "other"'),
    at('~1l/get/X-Gatehouse-Access', MISPLACED),
    at('~1l/x-gatehouse-acces', MISPLACED),
    at('~1m/get', 'an operation must not be a $ref'),
    at('~1n/post', 'is not supported beside $ref'),
    at('~1n/x-gatehouse-access', 'must be one of public, user, admin'),
    at('~1p~1{id}/x-gatehouse-secret-path', 'must be true or false'),
    at('~1q/get/x-gatehouse-secret-path', 'the path has no parameter'),
    `gateway: openapi.json#/x-gatehouse-access: ${MISPLACED}`
  ])
})

const UNREADABLE: readonly (readonly [string, string, string | object | null, RegExp])[] = [
  ['is missing', 'missing.yaml', null, /GATEWAY_ROUTES must name a readable file \(ENOENT\): .*missing\.yaml$/],
  ['is a missing module', 'missing.mjs', null, /GATEWAY_ROUTES must name a readable file \(ENOENT\): .*missing\.mjs$/],
  ['is not JSON', 'openapi.json', '{"openapi":\n  "3.1.0" "paths" }', /openapi\.json:2:11: .*JSON/],
  ['is not YAML', 'openapi.yaml', 'openapi: 3.1.0\npaths: [', /openapi\.yaml:2:\d+: /],
  [
    'has a path twice',
    'openapi.yaml',
    'openapi: 3.1.0\npaths:\n  /a: {}\n  /a: {}\n',
    /openapi\.yaml:4:\d+: .*duplicate/i
  ],
  [
    'is JSON and has a path twice',
    'openapi.json',
    '{"openapi":"3.1.0","paths":{"/a":{},"\\u002fa":{"get":{}},"/b":{}}}',
    /openapi\.json#\/paths\/~1a: duplicate name$/
  ],
  ['has no paths', 'openapi.yaml', 'openapi: 3.1.0\npath: {}\n', /openapi\.yaml#\/paths: must be an object of paths$/],
  ['is Swagger 2', 'openapi.json', { swagger: '2.0' }, /there is no "openapi", supported are 3\.0 and 3\.1$/],
  ['is OpenAPI 4', 'openapi.json', { openapi: '4.0.0' }, /"openapi" is 4\.0\.0, supported are 3\.0 and 3\.1$/],
  [
    'has a number as its version',
    'openapi.yaml',
    'openapi: 3.1\npaths: {}',
    /openapi\.yaml#\/openapi: must be a text, such as "3\.1\.0"$/
  ],
  [
    'is YAML with aliases that stand for billions of values',
    'openapi.yaml',
    `x: [&a0 x]\n${Array.from({ length: 12 }, (_, level) => `x${level}: &a${level + 1} [${`*a${level},`.repeat(9)}]`).join('\n')}`,
    /openapi\.yaml: its aliases stand for more than 5000000 values$/
  ],
  ['is YAML with an alias inside of itself', 'openapi.yaml', 'a: &a { b: *a }', /openapi\.yaml: its aliases stand for/],
  ['is a list', 'openapi.json', [], /there is no "openapi"/],
  ['is a module with a syntax error', 'routes.mjs', 'export default {', /routes\.mjs: /],
  ['is a module without tables', 'routes.mjs', 'export const x = 1', /routes\.mjs: x: is not a route table/],
  ['is of another kind', 'routes.txt', '', /GATEWAY_ROUTES must end in /]
]

for (const [title, name, content, line] of UNREADABLE) {
  t.test(`a file of routes is rejected with one line if it ${title}`, async (t) => {
    const errors = await readRoutesFile(written(t, name, content)).then(
      () => [],
      (error: unknown) => (error instanceof SettingsError ? error.errors : [String(error)])
    )

    t.match(errors, [line])
    t.equal(errors.length, 1)
  })
}
