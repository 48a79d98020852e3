/**
 * `npm run client-api` writes the calls of the client library from the gateway's route tables, under the names that the API
 * description gives them. A test compares, so that the library cannot offer anything else than the gateway has.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TSchema } from '@sinclair/typebox'
import { operationIds } from '../src/gateway/api-docs/operation-ids.js'
import type { RouteDeclaration, RouteTable } from '../src/gateway/routes/declare.js'
import { routeTables } from '../src/gateway/routes/index.js'
import { ROOT } from './root.js'

export const OPERATIONS_FILE = join(ROOT, 'src/client/api/operations.ts')

/** Where a schema is to be had: the file, and its name there. */
type SchemaPlaces = ReadonlyMap<unknown, { readonly file: string; readonly name: string }>

/** A name of the API, with what it does, what is below it, or both: `floors.calibrate` and `floors.calibrate.accept`. */
interface Branch {
  row: RouteDeclaration | null
  readonly below: Map<string, Branch>
}

export const clientOperations = async (tables: readonly RouteTable[] = routeTables): Promise<string> => {
  const rows = tables.flatMap((table) => table.rows)
  const places = await schemaPlaces()
  const root = treeOf(operationIds(rows))
  return formatted(`// Written by \`npm run client-api\` from the gateway's route tables, not by hand.
${importsOf(rows, places)}
import type { Calls } from './calls.js'

export const operations = (calls: Calls) => (${objectOf(root.below, places)})

/** Every route of the API as a function. */
export type Api = ReturnType<typeof operations>
`)
}

const schemaPlaces = async (): Promise<SchemaPlaces> => {
  const files = readdirSync(join(ROOT, 'schemas')).filter((file) => file !== 'registry.ts')
  const modules = await Promise.all(files.map((file) => import(`../schemas/${file.replace(/\.ts$/, '.js')}`)))
  return new Map(
    files.flatMap((file, index) =>
      Object.entries(modules[index] as Record<string, unknown>).map(([name, value]) => [value, { file, name }] as const)
    )
  )
}

const treeOf = (ids: ReadonlyMap<RouteDeclaration, string>): Branch => {
  const root: Branch = { row: null, below: new Map() }
  for (const [row, id] of ids) {
    let branch = root
    for (const name of id.split('.')) {
      const next = branch.below.get(name) ?? { row: null, below: new Map() }
      branch.below.set(name, next)
      branch = next
    }
    if (branch.row !== null) throw new Error(`two routes are called ${id}`)
    branch.row = row
  }
  return root
}

const importsOf = (rows: readonly RouteDeclaration[], places: SchemaPlaces): string => {
  const names = new Map<string, Set<string>>()
  for (const { body } of rows) {
    if (body === null) continue
    const { file, name } = placeOf(body, places)
    names.set(file, (names.get(file) ?? new Set()).add(name))
  }
  return [...names]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([file, of]) => {
      const source = `../../../schemas/${file.replace(/\.ts$/, '.js')}`
      return `import { ${[...of].toSorted().join(', ')} } from '${source}'`
    })
    .join('\n')
}

const placeOf = (schema: TSchema, places: SchemaPlaces) => {
  const place = places.get(schema)
  if (place === undefined) throw new Error(`${schema.$id} is exported by no file of schemas/`)
  return place
}

const objectOf = (branches: Branch['below'], places: SchemaPlaces): string =>
  `{\n${[...branches].map(([name, branch]) => `${summaryOf(branch)}${name}: ${branchOf(branch, places)}`).join(',\n')}\n}`

const summaryOf = ({ row }: Branch): string =>
  row === null ? '' : `/** ${row.summary}: \`${row.method} ${row.path}\`. */\n`

const branchOf = ({ row, below }: Branch, places: SchemaPlaces): string => {
  if (row === null) return objectOf(below, places)
  const call = callOf(row, places)
  return below.size === 0 ? call : `Object.assign(${call}, ${objectOf(below, places)})`
}

const callOf = ({ method, path, kind, body, bodyOptional }: RouteDeclaration, places: SchemaPlaces): string => {
  const parameters = path.split('/').filter((segment) => segment.startsWith(':')).length
  if (parameters > 1) throw new Error(`${path} has more parameters than the client's calls have`)
  const one = parameters === 1

  if (kind === 'upload' && one) return `calls.uploadTo('${path}')`
  if (kind === 'stream' && !one) return `calls.download('${path}')`
  if (kind === 'upload' || kind === 'stream') throw new Error(`the client has no call for ${kind} at ${path}`)
  if (body === null) return `calls.${one ? 'readOne' : 'read'}('${path}')`
  const maker = `send${one ? 'To' : ''}${bodyOptional ? 'Maybe' : ''}`
  return `calls.${maker}('${method}', '${path}', ${placeOf(body, places).name})`
}

const formatted = (text: string): string => {
  const { stdout, stderr, status } = spawnSync(
    join(ROOT, 'node_modules/.bin/biome'),
    ['check', '--write', `--stdin-file-path=${OPERATIONS_FILE}`],
    { input: text, encoding: 'utf8', cwd: ROOT }
  )
  if (status !== 0) throw new Error(`biome could not format the operations: ${stderr}`)
  return stdout
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(OPERATIONS_FILE, await clientOperations())
