import { HttpError } from '../errors.js'
import { csv } from '../export/csv.js'
import { importFile } from '../import/import.js'
import type { ImportKind } from '../import/kinds.js'
import { kinds, planImport, previewOf } from '../import/preview.js'
import { exported, textOf } from '../queries.js'
import { type Call, type Handler, type Handlers, handler, perMinute } from '../route.js'
import { fileIn } from '../uploads.js'

const FILES = { options: { bodyLimit: 5 * 1024 * 1024, ...perMinute(30).options } }
const EXPORTS = perMinute(30)

const bytesIn = async (call: Call): Promise<Uint8Array> => new Uint8Array(await (await fileIn(call)).arrayBuffer())

const routesOf = (name: string, kind: ImportKind): Record<string, Handler> => {
  const { resource, columns } = kind
  const { permission } = resource
  const may = `${permission}.update` as const
  const importing = handler(
    may,
    async (call) => {
      const fingerprint = textOf(call.query, 'fingerprint')
      if (fingerprint === null)
        throw new HttpError(400, 'PREVIEW_REQUIRED', 'Request a preview first, and send its fingerprint.')
      return importFile(call, kind, await bytesIn(call), fingerprint)
    },
    FILES
  )
  return {
    [`POST /api/imports/${name}/preview`]: handler(
      may,
      async (call) => previewOf(await planImport(call, kind, await bytesIn(call))),
      { ...FILES, changesNothing: true }
    ),
    [`POST /api/imports/${name}`]: importing,
    // The path that the gateway declares.
    ...(name === 'personnel' && { 'POST /api/personnel/import': importing }),
    [`GET ${resource.path}/export/csv`]: handler(
      `${permission}.export`,
      exported(resource, `${name}.csv`, (records) => csv(columns, records)),
      EXPORTS
    )
  }
}

/** CSV files: exports, and imports with a preview. */
export const importRoutes: Handlers = Object.assign(
  {},
  ...Object.entries(kinds).map(([name, kind]) => routesOf(name, kind))
)
