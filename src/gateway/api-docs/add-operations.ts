import type { Description } from '../../openapi/description.js'
import type { AccessRules } from '../access.js'
import { type DocumentedOperations, documentedOperations } from './documented-operations.js'

/** An OpenAPI description, of `GATEWAY_ROUTES` or of a row. */
export interface Described {
  /** The name of the row; null for `GATEWAY_ROUTES`. */
  readonly name: string | null
  /** Null for every host. */
  readonly hosts: readonly string[] | null
  readonly description: Description | null
  readonly access: AccessRules
}

/** The part of the document at `/api/docs` that operations are added to. */
interface OpenDocument {
  tags?: readonly { readonly name: string }[] | undefined
  paths?: object | undefined
  components?: object | undefined
}

type PathItem = DocumentedOperations['paths'][string]

/**
 * Adds the operations of a description. The document has one place for a path: if rows for different hosts share one, it
 * describes the first of them.
 */
export const addOperations = (document: OpenDocument, { name, hosts, description, access }: Described): void => {
  if (description === null) return
  const before: Readonly<Record<string, object | undefined>> = { ...document.components }
  const { paths, components, tags } = documentedOperations(description, access, before)
  const servers = hosts === null ? {} : { servers: hosts.map((host) => ({ url: `//${host}` })) }
  const ids = operationIds(document.paths ?? {})
  const added = Object.entries(paths).map(([path, item]) => [path, { ...servers, ...withOwnIds(item, name, ids) }])
  const sections = Object.entries(components).map(([section, members]) => [section, { ...before[section], ...members }])
  const known = new Set(document.tags?.map((tag) => tag.name))
  Object.assign(document, {
    tags: [...(document.tags ?? []), ...tags.filter((tag) => !known.has(String(tag.name)))],
    paths: { ...Object.fromEntries(added), ...document.paths },
    components: { ...before, ...Object.fromEntries(sections) }
  })
}

const operationIds = (paths: object): ReadonlySet<unknown> =>
  new Set(Object.values(paths).flatMap((item) => Object.values(item).map((operation) => Object(operation).operationId)))

/** Ids are unique in a document. One that another description has already gets the name of the row in front. */
const withOwnIds = (item: PathItem, name: string | null, taken: ReadonlySet<unknown>): PathItem =>
  Object.fromEntries(
    Object.entries(item).map(([method, operation]) => {
      const { operationId, ...rest }: { operationId?: unknown } = Object(operation)
      if (operationId === undefined || !taken.has(operationId)) return [method, operation]
      return [method, { ...rest, operationId: `${name ?? 'backend'}_${operationId}` }]
    })
  )
