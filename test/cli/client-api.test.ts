import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { ROOT } from '../../scripts/lib/root.js'
import { clientApi } from '../../src/cli/client-api.js'

const OPTIONS: ts.CompilerOptions = {
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  types: [],
  paths: { 'gatehouse-client': [join(ROOT, 'src/client/index.ts')] }
}

/** The files that all checks share, such as the types of the browser. */
const parsed = new Map<string, ts.SourceFile | undefined>()

/** The type errors of a module that uses the generated one. */
const typeErrors = (folder: string, generated: string, use: string): readonly string[] => {
  const [api, main] = [join(folder, 'api.ts'), join(folder, 'main.ts')]
  writeFileSync(api, generated)
  writeFileSync(main, use)
  const host = ts.createCompilerHost(OPTIONS)
  const { getSourceFile } = host
  host.getSourceFile = (name, ...options) => {
    if (name.startsWith(folder)) return getSourceFile(name, ...options)
    if (!parsed.has(name)) parsed.set(name, getSourceFile(name, ...options))
    return parsed.get(name)
  }
  const program = ts.createProgram([api, main], OPTIONS, host)
  return program
    .getSourceFiles()
    .filter(({ fileName }) => fileName.startsWith(folder))
    .flatMap((file) => ts.getPreEmitDiagnostics(program, file))
    .map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`)
}

const DESCRIPTION = {
  openapi: '3.1.0',
  paths: {
    '/floors': {
      parameters: [{ name: 'site', in: 'query', schema: { type: 'string' } }],
      get: {
        operationId: 'list-floors',
        summary: 'List floors',
        parameters: [{ name: 'limit', in: 'query', schema: { type: 'integer' } }],
        responses: {
          200: {
            description: '',
            content: {
              'application/json': { schema: { type: 'array', items: { $ref: '#/components/schemas/Floor' } } }
            }
          }
        }
      },
      post: {
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Floor' } } }
        },
        responses: {
          201: { description: '', content: { 'application/json': { schema: { $ref: '#/components/schemas/Floor' } } } }
        }
      }
    },
    '/search': {
      post: {
        operationId: 'search',
        parameters: [{ name: 'q', in: 'query', required: true, schema: { type: 'string' } }],
        requestBody: { content: { 'application/json': { schema: { type: 'object' } } } },
        responses: { 204: { description: '' } }
      }
    },
    '/floors/{floor-id}/plan': {
      get: { operationId: 'getPlan', responses: { 200: { description: 'The plan, not described' } } },
      put: {
        operationId: 'setPlan',
        requestBody: { content: { 'multipart/form-data': {} } },
        responses: { 204: { description: '' } }
      }
    }
  },
  components: {
    schemas: {
      Floor: {
        type: 'object',
        required: ['id', 'name'],
        properties: {
          id: { type: 'string', readOnly: true },
          name: { type: 'string' },
          kind: { enum: ['office', 'lab', null] },
          above: { $ref: '#/components/schemas/Floor' }
        }
      }
    }
  }
}

const START =
  "import { createClient } from 'gatehouse-client'\nimport { createApi } from './api.js'\nconst { api } = createClient({ routes: createApi })\n"

t.test('generated calls have the types of parameters, bodies and responses', async (t) => {
  const folder = t.testdir({ 'openapi.json': JSON.stringify(DESCRIPTION), 'package.json': '{"type":"module"}' })
  const generated = clientApi(join(folder, 'openapi.json'))

  t.same(
    typeErrors(
      folder,
      generated,
      `${START}
const floors = await api.listFloors({ query: { limit: 3, site: 'x' } })
const name: string | undefined = floors[0]?.name
const created = await api.postFloors({ name: 'x', kind: null })
const id: string = created.id
const nothing: null = await api.setPlan({ 'floor-id': 7 }, new FormData())
const plan = await api.getPlan({ 'floor-id': 7 })
const width: unknown = typeof plan === 'object' && plan !== null && 'width' in plan ? plan.width : null
await api.search(undefined, { query: { q: 'x' } })
await api.search({ deep: true }, { query: { q: 'x' } })
export { name, id, nothing, width }
`
    ),
    []
  )
  const wrong = typeErrors(
    folder,
    generated,
    `${START}
await api.listFloors({ query: { limit: 'x' } })
await api.postFloors({ kind: 'lab' })
await api.setPlan({}, new FormData())
await api.search({})
export {}
`
  )
  t.equal(wrong.length, 4, wrong.join('\n'))
})

t.test('unusual names and all successful responses have correct types', async (t) => {
  const json = (name: string) => ({
    description: '',
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } }
  })
  const text = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } }
  const document = {
    openapi: '3.1.0',
    paths: {
      '/files/${id}': {
        get: { operationId: '100% {sure}', summary: 'Ends */ early', responses: { 200: json('Blob'), 204: {} } },
        put: {
          requestBody: { content: { 'image/png': {} } },
          responses: { 200: json('ReturnType'), 201: json('a%20b') }
        }
      },
      '/caf%C3%A9': { get: { operationId: 'délicieux', responses: { default: json('String') } } }
    },
    components: { schemas: { Blob: text, ReturnType: text, 'a b': { type: 'integer' }, String: { type: 'string' } } }
  }
  const folder = t.testdir({ 'openapi.json': JSON.stringify(document), 'package.json': '{"type":"module"}' })
  const use = `${START}
const file = await api.type100Sure({ id: 1 })
const found: string = file === null ? '' : file.text
const changed: { readonly text: string } | number = await api.putFilesById({ id: 2 }, new Blob())
const name: string = await api.dLicieux()
export { changed, found, name }
`
  const generated = clientApi(join(folder, 'openapi.json'))
  t.same(typeErrors(folder, generated, use), [])
  t.match(generated, "call<BlobResponse | null>('GET', `/api/files/$${encodeURIComponent(path.id)}`, {")
})

/** A published description, and two with what generators write. */
const DESCRIPTIONS = [
  'node_modules/@figma/rest-api-spec/openapi/openapi.yaml',
  'test/openapi/fixtures/shop.yaml',
  'test/openapi/fixtures/trains.yaml'
]

t.test('calls that are generated from descriptions of different generators compile', async (t) => {
  const folder = t.testdir({ 'package.json': '{"type":"module"}' })
  for (const [index, name] of DESCRIPTIONS.entries()) {
    writeFileSync(join(folder, `published-${index}.ts`), clientApi(join(ROOT, name)))
  }
  const imports = DESCRIPTIONS.map((_, index) => `export * as api${index} from './published-${index}.js'`)
  t.same(typeErrors(folder, 'export {}', imports.join('\n')), [])
})
