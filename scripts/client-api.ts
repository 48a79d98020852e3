/**
 * `npm run client-api`: generates the functions of the client library from the gateway's route tables, with the names of
 * the API description. A test checks that the generated file is current.
 */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { TSchema } from '@sinclair/typebox'
import { routeTables } from '../src/gateway/routes/index.js'
import { operationIds } from '../src/gateway/routes/operation-ids.js'
import type { RouteDeclaration, RouteTable } from '../src/gateway/routes/tables/declare.js'
import { runCommand } from './lib/command.js'
import { formatSource } from './lib/format.js'
import { ROOT } from './lib/root.js'

export const OPERATIONS_FILE = join(ROOT, 'src/client/buildings/api/operations.ts')

/** The file that exports a schema, and its name there. */
type SchemaSources = ReadonlyMap<unknown, { readonly file: string; readonly name: string }>

/** A node of the API's name tree. It may be a route and have children: `floors.calibrate` and `floors.calibrate.accept`. */
interface Branch {
  row: RouteDeclaration | null
  readonly below: Map<string, Branch>
}

export const clientOperations = async (tables: readonly RouteTable[] = routeTables): Promise<string> => {
  const rows = tables.flatMap((table) => table.rows)
  const sources = await schemaSources()
  const root = treeOf(operationIds(rows))
  return formatSource(
    `// Written by \`npm run client-api\` from the gateway's route tables, not by hand.
${importsOf(rows, sources)}
import type { Calls } from './calls.js'

export const operations = (calls: Calls) => (${objectOf(root.below, sources)})

/** Every route of the API as a function. */
export type Api = ReturnType<typeof operations>
`,
    OPERATIONS_FILE
  )
}

const schemaSources = async (): Promise<SchemaSources> => {
  const files = readdirSync(join(ROOT, 'schemas')).filter((file) => file !== 'registry.ts')
  const modules = await Promise.all(files.map((file) => import(`../schemas/${file.replace(/\.ts$/, '.js')}`)))
  return new Map(
    files.flatMap((file, index) =>
      Object.entries<unknown>(modules[index]).map(([name, value]) => [value, { file, name }] as const)
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
    if (branch.row !== null) throw new Error(`two routes have the name ${id}`)
    branch.row = row
  }
  return root
}

const importsOf = (rows: readonly RouteDeclaration[], sources: SchemaSources): string => {
  const names = new Map<string, Set<string>>()
  for (const { body } of rows) {
    if (body === null) continue
    const { file, name } = sourceOf(body, sources)
    names.set(file, (names.get(file) ?? new Set()).add(name))
  }
  return [...names]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([file, of]) => {
      const source = `../../../../schemas/${file.replace(/\.ts$/, '.js')}`
      return `import { ${[...of].toSorted().join(', ')} } from '${source}'`
    })
    .join('\n')
}

const sourceOf = (schema: TSchema, sources: SchemaSources) => {
  const source = sources.get(schema)
  if (source === undefined) throw new Error(`${schema.$id} is not exported by any file of schemas/`)
  return source
}

const objectOf = (branches: Branch['below'], sources: SchemaSources): string =>
  `{\n${[...branches].map(([name, branch]) => `${summaryOf(branch)}${name}: ${branchOf(branch, sources)}`).join(',\n')}\n}`

const summaryOf = ({ row }: Branch): string =>
  row === null ? '' : `/** ${row.summary}: \`${row.method} ${row.path}\`. */\n`

const branchOf = ({ row, below }: Branch, sources: SchemaSources): string => {
  if (row === null) return objectOf(below, sources)
  const call = callOf(row, sources)
  return below.size === 0 ? call : `Object.assign(${call}, ${objectOf(below, sources)})`
}

const callOf = ({ method, path, kind, body, bodyOptional }: RouteDeclaration, sources: SchemaSources): string => {
  const parameters = path.split('/').filter((segment) => segment.startsWith(':')).length
  if (parameters > 1) throw new Error(`${path} has more than one parameter, which the client does not support`)
  const hasParameter = parameters === 1

  if (kind === 'upload') return `calls.${hasParameter ? 'uploadTo' : 'upload'}('${path}')`
  if (kind === 'stream' && hasParameter) throw new Error(`the client has no call for a file at ${path}`)
  if (kind === 'stream') return `calls.download('${path}')`
  if (body === null) return `calls.${hasParameter ? 'readOne' : 'read'}('${path}')`
  const maker = `send${hasParameter ? 'To' : ''}${bodyOptional ? 'Maybe' : ''}`
  return `calls.${maker}('${method}', '${path}', ${sourceOf(body, sources).name})`
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await runCommand('Usage: npm run client-api', async (args) => {
    parseArgs({ args: [...args], options: {} })
    writeFileSync(OPERATIONS_FILE, await clientOperations())
    return 0
  })
