import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { Documents } from '../../src/openapi/documents.js'
import { endlessSchemas } from '../../src/openapi/endless-schemas.js'
import { RequestSchemas } from '../../src/openapi/schemas.js'
import { compileSchemas } from '../../src/openapi/validators.js'
import { checkProperty } from '../helper/property.js'

const KEYWORDS_OF_VALUES = [
  ...['type', 'enum', 'const', 'required', 'pattern', 'format', 'uniqueItems', 'minLength', 'maxLength', 'minItems'],
  ...['maxItems', 'minProperties', 'maxProperties', 'minContains', 'maxContains', 'minimum', 'maximum', 'multipleOf'],
  ...['exclusiveMinimum', 'exclusiveMaximum', 'dependentRequired', 'nullable', 'readOnly', 'discriminator', 'default'],
  ...['$id', '$schema', '$anchor', '$comment', '$defs', '$vocabulary', 'definition', 'x-other', 'dependencies']
]
const KEYWORDS_OF_SCHEMAS = [
  ...['items', 'not', 'contains', 'propertyNames', 'if', 'then', 'else', 'additionalProperties', 'contentSchema'],
  ...['unevaluatedItems', 'unevaluatedProperties']
]
const VALUES = fc.oneof(
  fc.constantFrom('string', 'integer', 'null', 'date-time', 'uuid', '^a+$', '\\p{L}', '(?<a>b)\\k<a>', '__proto__'),
  fc.constantFrom(0, 1, -1, 0.5, 1e308, 2 ** 53, true, false, null),
  fc.constant(['string', 'null']),
  fc.constant({ propertyName: 'kind', mapping: { a: '#/$defs/A', b: 'B' } }),
  fc.constant({ a: ['b'] }),
  fc.array(fc.string(), { maxLength: 3 }),
  fc.jsonValue({ maxDepth: 2 })
)
const NAMES = fc.oneof(fc.constantFrom('kind', '__proto__', 'constructor', "a'b`", '\u2028', ''), fc.string())

const { schema } = fc.letrec<{ schema: unknown; object: unknown }>((tie) => ({
  schema: fc.oneof({ depthSize: 'small' }, fc.boolean(), fc.constant({ $ref: '#/paths/~1x' }), tie('object')),
  object: fc
    .tuple(
      fc.dictionary(fc.constantFrom(...KEYWORDS_OF_VALUES), VALUES, { maxKeys: 4 }),
      fc.dictionary(fc.constantFrom(...KEYWORDS_OF_SCHEMAS), tie('schema'), { maxKeys: 2 }),
      fc.dictionary(
        fc.constantFrom('allOf', 'anyOf', 'oneOf', 'prefixItems'),
        fc.array(tie('schema'), { minLength: 1, maxLength: 3 }),
        { maxKeys: 2 }
      ),
      fc.dictionary(
        fc.constantFrom('properties', 'patternProperties', 'dependentSchemas'),
        fc.dictionary(NAMES, tie('schema'), { maxKeys: 3 }),
        { maxKeys: 2 }
      )
    )
    .map((parts) => Object.assign({}, ...parts))
}))

/** The errors of the document, and those of compiling its schema although the document has no errors. */
const errorsOf = (folder: string, value: unknown, isVersion30: boolean) => {
  const file = join(folder, 'openapi.json')
  writeFileSync(file, JSON.stringify({ paths: { '/x': value } }))
  const documents = new Documents(file)
  const reported: string[] = []
  const report = ({ message }: Error): void => void reported.push(message)
  const bodies = new RequestSchemas({ documents, isVersion30, isText: false, report })
  const texts = new RequestSchemas({ documents, isVersion30, isText: true, report })
  const located = documents.resolve(documents.root, '#/paths/~1x')
  for (const schemas of [bodies, texts]) {
    schemas.add(located)
    reported.push(...endlessSchemas(schemas))
  }
  return { reported, compiled: reported.length > 0 ? [] : compileSchemas(bodies, texts, 1000).errors }
}

t.test('every schema that is accepted can be compiled', async (t) => {
  const folder = t.testdir({})
  let accepted = 0
  await checkProperty(
    t,
    fc.property(schema, fc.boolean(), (value, isVersion30) => {
      const { reported, compiled } = errorsOf(folder, value, isVersion30)
      if (reported.length === 0) accepted += 1
      return compiled.length === 0
    }),
    { numRuns: 1000 }
  )
  t.ok(accepted > 10, `${accepted} schemas were accepted`)
})

t.test('an exclusive bound is a boolean or a number in OpenAPI 3.0, and a number in later versions', async (t) => {
  const folder = t.testdir({})
  for (const bound of ['Minimum', 'Maximum']) {
    const withFlag = { [bound.toLowerCase()]: 5, [`exclusive${bound}`]: true }
    const withNumber = { [`exclusive${bound}`]: 5 }
    t.same(errorsOf(folder, withFlag, true), { reported: [], compiled: [] })
    t.same(errorsOf(folder, withNumber, true), { reported: [], compiled: [] })
    t.match(errorsOf(folder, withFlag, false).reported, [/must be a number/])
    t.same(errorsOf(folder, withNumber, false), { reported: [], compiled: [] })
  }
})

t.test('a schema that does not compile is reported with its location', async (t) => {
  const file = join(t.testdir({}), 'openapi.json')
  writeFileSync(file, '{"paths":{"/x":{"type":"string"}}}')
  const documents = new Documents(file)
  const options = { documents, isVersion30: false, report: () => undefined }
  const bodies = new RequestSchemas({ ...options, isText: false })
  const texts = new RequestSchemas({ ...options, isText: true })
  const name = bodies.add(documents.resolve(documents.root, '#/paths/~1x'))
  bodies.definitions[name] = { type: 'nonsense' }

  t.match(compileSchemas(bodies, texts, 1000).errors, [/^openapi\.json#\/paths\/~1x: type must be JSONType/])
})
