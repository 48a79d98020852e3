import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KindGuard, type TObject, type TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import t from 'tap'
import { type SchemaName, schemas } from '../../schemas/registry.js'
import { ROOT } from '../../scripts/lib/root.js'
import { choicesOf, propertiesOf, typesOf } from '../helper/schema.js'

const folder = join(ROOT, 'schemas')
const files = readdirSync(folder).filter((file) => file.endsWith('.ts'))

// Shared parts that are not a body or a payload themselves.
const UNREGISTERED = ['Id', 'Paging', 'Permission']

// Closed schemas. All others accept unknown fields.
const CLOSED: readonly SchemaName[] = [
  'AmbientBatch',
  'AmbientEntry',
  'AuthUser',
  'ErrorBody',
  'PositionBatch',
  'SessionExchange'
]

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  AmbientBatch: ['type', 'data'],
  AmbientEntry: ['deviceId', 'deviceType', 'receiverId', 'rssi', 'timestamp'],
  AssetCreate: ['name'],
  AuthUser: ['userId', 'email', 'displayName', 'role'],
  BuildingCreate: ['name'],
  DepartmentCreate: ['name'],
  EmergencyContactCreate: ['name'],
  EmergencyCreate: ['type'],
  EmergencyTrigger: ['type'],
  ErrorBody: ['success', 'error', 'requestId'],
  ErrorReport: ['message'],
  FloorCreate: ['name'],
  Login: ['password'],
  PersonnelBatchDelete: ['ids'],
  PersonnelBulk: ['ids'],
  PositionBatch: ['type', 'data'],
  PositionEntry: ['transmitterId', 'position', 'positionMethod', 'floorId'],
  SessionExchange: ['email', 'name', 'okta', 'groups'],
  SessionResponse: ['success'],
  UserCreate: ['email'],
  ZoneCreate: ['name'],
  ZoneTypeCreate: ['name']
}

/** The first entry of a list that an example has. */
const firstOf = (list: unknown): Fields => (Array.isArray(list) ? list[0] : {})

type Path = readonly (string | number)[]
type Fields = Record<string, unknown>

// `Object.entries` types the names as string.
const entries = Object.entries(schemas) as [SchemaName, TSchema][]
const objects = entries.filter((entry): entry is [SchemaName, TObject] => KindGuard.IsObject(entry[1]))

const check = (schema: TSchema, value: unknown): boolean => TypeCompiler.Compile(schema).Check(value)

/** The first example; only for object schemas. */
const example = (schema: TSchema): Fields => structuredClone(schema.examples[0])

/** A schema and all its subschemas. */
function* within(schema: TSchema, path = ''): Generator<readonly [string, TSchema]> {
  yield [path, schema]
  for (const [i, part] of choicesOf(schema).entries()) yield* within(part, `${path}|${i}`)
  if (schema.items) yield* within(schema.items, `${path}[]`)
  for (const [name, part] of propertiesOf(schema)) yield* within(part, `${path}.${name}`)
}

/** Missing descriptions and limits of a schema or subschema. */
const flawsOf = (part: TSchema, path: string): readonly string[] => {
  const isNumber = part.type === 'number' || part.type === 'integer'
  const RULES: Readonly<Record<string, boolean>> = {
    'a part has no $id of its own': path === '' || part.$id === undefined,
    'there are no defaults': !('default' in part),
    'a format would have to be registered': !('format' in part),
    'a text is bounded': part.type !== 'string' || part.const !== undefined || part.maxLength > 0,
    'a list is bounded': part.type !== 'array' || part.maxItems > 0,
    'a number is bounded below': !isNumber || part.minimum >= Number.MIN_SAFE_INTEGER,
    'a number is bounded above': !isNumber || part.maximum <= Number.MAX_SAFE_INTEGER,
    'an object is open or closed on purpose': part.type !== 'object' || typeof part.additionalProperties === 'boolean',
    'an open object is bounded': part.additionalProperties !== true || part.maxProperties > 0,
    'a field has a description': Object.values<TSchema>(part.properties ?? {}).every(({ description }) => description)
  }
  return Object.entries(RULES).flatMap(([rule, holds]) => (holds ? [] : [`${path}: ${rule}`]))
}

// One value of each type. The number has a fraction, so integers reject it.
const SAMPLES: Readonly<Record<string, unknown>> = {
  string: 'text',
  number: 7.5,
  boolean: true,
  object: { foreign: 1 },
  array: [[]],
  null: null
}

const foreignTo = (schema: TSchema): readonly unknown[] =>
  Object.entries(SAMPLES).flatMap(([type, value]) => (typesOf(schema).includes(type) ? [] : [value]))

/** The fields of a schema that a value has or could have, with their paths. */
function* fieldsOf(schema: TSchema, value: unknown, path: Path = []): Generator<readonly [Path, TSchema]> {
  for (const choice of choicesOf(schema)) if (check(choice, value)) yield* fieldsOf(choice, value, path)
  if (Array.isArray(value) && schema.items)
    for (const [i, item] of value.entries()) yield* fieldsOf(schema.items, item, [...path, i])
  if (typeof value !== 'object' || value === null) return
  for (const [name, part] of propertiesOf(schema)) {
    yield [[...path, name], part]
    yield* fieldsOf(part, Reflect.get(value, name), [...path, name])
  }
}

const withValue = (whole: object, path: Path, value: unknown): unknown => {
  const copy = structuredClone(whole)
  let inner: object = copy
  for (const step of path.slice(0, -1)) inner = Reflect.get(inner, step)
  Reflect.set(inner, path.at(-1) ?? '', value)
  return copy
}

t.test('the registry', async (t) => {
  const exported: Record<string, TSchema> = {}
  for (const file of files) {
    const module: Record<string, TSchema> = await import(`../../schemas/${file.replace(/\.ts$/, '.js')}`)
    for (const [name, value] of Object.entries(module))
      if (name.endsWith('Schema')) exported[name.slice(0, -'Schema'.length)] = value
  }

  t.test('the registry contains every exported schema except the shared parts', async (t) => {
    t.same(
      Object.keys(schemas).sort(),
      Object.keys(exported)
        .filter((name) => !UNREGISTERED.includes(name))
        .sort()
    )
    for (const [name, schema] of entries) t.equal(schema, exported[name], name)
  })

  t.test('every schema has an id, a title, a description and a valid example', async (t) => {
    for (const [name, schema] of Object.entries(exported)) {
      t.equal(schema.$id, name)
      t.type(schema.title, 'string', `${name} has a title`)
      t.type(schema.description, 'string', `${name} has a description`)
      t.ok(schema.examples?.length > 0, `${name} has an example`)
      for (const value of schema.examples ?? []) {
        const errors = [...TypeCompiler.Compile(schema).Errors(value)].map(({ path, message }) => `${path} ${message}`)
        t.same(errors, [], `the example of ${name} is valid`)
      }
    }
  })

  t.test('every schema has descriptions and limits for all fields', async (t) => {
    for (const [name, schema] of Object.entries(exported))
      t.same(
        [...within(schema)].flatMap(([path, part]) => flawsOf(part, path)),
        [],
        name
      )
  })
})

// Not the compiler, because it generates code, which the CSP of a page forbids.
const LIBRARY = ['@sinclair/typebox', '@sinclair/typebox/errors']

t.test('every file imports nothing but the schema library and its siblings', async (t) => {
  for (const file of files) {
    const text = readFileSync(join(folder, file), 'utf8')
    const sources = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, source]) => source ?? '')
    for (const source of sources)
      t.ok(LIBRARY.includes(source) || /^\.\/[a-z-]+\.js$/.test(source), `${file}: ${source}`)
  }
})

t.test('a schema', async (t) => {
  t.test('a schema requires exactly the listed fields', async (t) => {
    for (const [name, schema] of objects) t.same(schema.required ?? [], REQUIRED[name] ?? [], name)
  })

  t.test('a schema rejects a body without a required field', async (t) => {
    for (const [name, schema] of objects)
      for (const field of schema.required ?? []) {
        const { [field]: _, ...rest } = example(schema)
        t.notOk(check(schema, rest), `${name} without ${field}`)
      }
  })

  t.test('a schema rejects values of the wrong type in each field', async (t) => {
    for (const [name, schema] of entries) {
      const compiled = TypeCompiler.Compile(schema)
      const accepted: string[] = []
      let tried = 0
      for (const value of schema.examples)
        for (const [path, part] of fieldsOf(schema, value))
          for (const foreign of foreignTo(part)) {
            tried++
            if (compiled.Check(withValue(value, path, foreign)))
              accepted.push(`${path.join('.')}: ${JSON.stringify(foreign)}`)
          }
      t.same(accepted, [], `${name}, ${tried} values`)
    }
  })

  t.test('the examples of a schema contain every field', async (t) => {
    const withoutIndexes = (text: string) => text.replaceAll(/\|\d+|\[\]|\.\d+/g, '')
    for (const [name, schema] of objects) {
      const shown = new Set<string>()
      const missing: string[] = []
      for (const value of schema.examples)
        for (const [path] of fieldsOf(schema, value)) shown.add(withoutIndexes(`.${path.join('.')}`))
      for (const [path, part] of within(schema))
        for (const field of Object.keys(part.properties ?? {}))
          if (!shown.has(`${withoutIndexes(path)}.${field}`)) missing.push(`${path}.${field}`)
      t.same(missing, [], name)
    }
  })

  t.test('an object schema rejects other types', async (t) => {
    for (const [name, schema] of objects)
      for (const value of [null, [], 'text', 7, true, undefined]) t.notOk(check(schema, value), `${name}: ${value}`)
  })

  t.test('a closed schema rejects unknown fields', async (t) => {
    for (const name of CLOSED) t.notOk(check(schemas[name], { ...example(schemas[name]), unknown: 1 }), name)
    const { data, ...envelope } = example(schemas.AmbientBatch)
    t.notOk(check(schemas.AmbientBatch, { ...envelope, data: [{ ...firstOf(data), unknown: 1 }] }))
  })

  t.test('an open schema accepts unknown fields unchanged', async (t) => {
    for (const [name, schema] of objects) {
      if (CLOSED.includes(name)) continue
      const value = { ...example(schema), unknown: { deep: [1, 'two', null] }, unknown_too: null }
      const before = structuredClone(value)
      t.ok(check(schema, value), name)
      t.same(value, before, `${name} is not touched`)
    }
    const { data, ...envelope } = example(schemas.PositionBatch)
    t.ok(check(schemas.PositionBatch, { ...envelope, data: [{ ...firstOf(data), speed: 1.2 }] }))
  })

  t.test('an open schema rejects too many fields', async (t) => {
    const many = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`field${i}`, i]))
    for (const [name, schema] of objects)
      if (!CLOSED.includes(name)) t.notOk(check(schema, { ...example(schema), ...many }), name)
  })

  t.test('an update schema rejects an empty body', async (t) => {
    const updates = objects.filter(([name]) => /(Update|Patch|Settings|Thresholds)$/.test(name))
    t.ok(updates.length > 0)
    for (const [name, schema] of updates) t.notOk(check(schema, {}), name)
  })

  t.test('a schema rejects unsafe integers', async (t) => {
    t.notOk(check(schemas.TokenExpiry, 2 ** 53))
    t.notOk(check(schemas.ZoneUpdate, { floorId: 2 ** 53 }))
    t.notOk(check(schemas.BuildingUpdate, { floorCount: 1e300 }))
  })
})

t.test('an id is a text of up to 128 characters or a safe integer', async (t) => {
  const CASES: readonly (readonly [value: unknown, isValid: boolean])[] = [
    ['f-2', true],
    [0, true],
    [7, true],
    ['x'.repeat(128), true],
    ['x'.repeat(129), false],
    ['', false],
    [-1, false],
    [1.5, false],
    [Number.MAX_SAFE_INTEGER + 1, false],
    [true, false],
    [['f-2'], false]
  ]
  for (const [value, expected] of CASES)
    t.equal(check(schemas.TransmitterAssign, { transmitterId: value }), expected, JSON.stringify(value).slice(0, 40))
})

t.test('sign-in', async (t) => {
  t.test('the login schema accepts a password with any other fields', async (t) => {
    t.ok(check(schemas.Login, { email: 'ada@example.com', password: 'x' }))
    t.ok(check(schemas.Login, { username: 'ada', password: 'x' }))
    t.ok(check(schemas.Login, { tenant: 'north', password: 'x' }))
  })

  t.test('the login schema rejects a missing, empty or too long password', async (t) => {
    for (const password of [undefined, '', null, 'x'.repeat(1025)])
      t.notOk(check(schemas.Login, { email: 'ada@example.com', password }))
  })

  t.test('the login schema rejects the fields of the exchange with any value', async (t) => {
    for (const field of ['okta', 'groups'])
      for (const value of [true, false, null, 0, '', 'true', [], ['admins'], {}]) {
        const body = { email: 'ada@example.com', password: 'x', [field]: value }
        t.notOk(check(schemas.Login, body), `${field} = ${JSON.stringify(value)}`)
        const [error, ...others] = [...TypeCompiler.Compile(schemas.Login).Errors(body)]
        t.equal(error?.path, `/${field}`)
        t.match(error?.schema.description, /only the server/)
        t.same(others, [])
      }
  })

  t.test('the login schema rejects a session exchange', async (t) => {
    t.notOk(check(schemas.Login, example(schemas.SessionExchange)))
  })
})

t.test('the exchange', async (t) => {
  t.test('the exchange schema requires its marker', async (t) => {
    t.notOk(check(schemas.SessionExchange, { ...example(schemas.SessionExchange), okta: false }))
  })
})

t.test('a session response has a user, or an error', async (t) => {
  const CASES: readonly (readonly [response: unknown, isValid: boolean, title: string])[] = [
    [{ success: true, data: { token: 'a.b', user: {} } }, true, 'the expiry may be the token’s own'],
    [{ success: false, data: null, error: 'wrong password' }, true, 'an error has no data'],
    [{ success: true, data: { token: 'a.b', user: { role: { id: 1 } } } }, true, 'the user is the backend’s'],
    [{ success: true, data: { token: '', user: {} } }, false, 'an empty token'],
    [{ success: true, data: { user: {} } }, true, 'no token, as browsers receive it'],
    [{ success: true, data: { token: 'a.b' } }, false, 'no user'],
    [{ success: true, data: { token: 'a.b', user: [] } }, false, 'a user that is a list'],
    [{ success: 'yes', data: { token: 'a.b', user: {} } }, false, 'success that is text']
  ]
  for (const [response, expected, title] of CASES) t.equal(check(schemas.SessionResponse, response), expected, title)
})

t.test('a permission is two or more words with dots', async (t) => {
  const CASES: readonly (readonly [text: string, isValid: boolean])[] = [
    ['emergency.trigger', true],
    ['admin.users', true],
    ['zone-types.read', true],
    ['admin.users.delete', true],
    ['personnel.*', true],
    ['emergency', false],
    ['.trigger', false],
    ['emergency.', false],
    ['emergency trigger.now', false],
    [`a.${'b'.repeat(127)}`, false]
  ]
  for (const [text, expected] of CASES) t.equal(check(schemas.AuthPermissions, [text]), expected, text.slice(0, 40))
})

t.test('an alarm', async (t) => {
  t.test('an alarm needs a type and nothing else', async (t) => {
    for (const schema of [schemas.EmergencyTrigger, schemas.EmergencyCreate]) {
      t.ok(check(schema, { type: 'fire' }))
      for (const body of [{}, { type: '' }, { type: null }, { type: 1 }]) t.notOk(check(schema, body))
    }
  })
})

t.test('an empty field', async (t) => {
  t.test('an empty field may be null', async (t) => {
    t.ok(check(schemas.ZoneUpdate, { name: 'Hall', capacity: null, floorId: null, polygon: null, metadata: null }))
  })

  t.test('a name must not be empty', async (t) => {
    for (const name of [null, '']) {
      t.notOk(check(schemas.ZoneCreate, { name }))
      t.notOk(check(schemas.ZoneUpdate, { name }))
    }
  })
})

t.test('every pattern matches the longest text quickly', async (t) => {
  for (const [name, schema] of entries)
    for (const [path, { pattern, maxLength }] of within(schema)) {
      if (!pattern) continue
      const rule = new RegExp(pattern)
      const started = performance.now()
      for (const part of ['a', '.', '@', 'a.', 'a@', ' ', '*-'])
        for (let i = 0; i < 100; i++) rule.test(`${part.repeat(maxLength)}!`)
      t.ok(performance.now() - started < 1000, name + path)
    }
})
