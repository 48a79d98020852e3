import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ValidateFunction } from 'ajv'
import { parseAllDocuments } from 'yaml'
import { isObject } from '../../src/shared/is-object.js'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  readonly data?: Readonly<Record<string, string>>
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the kind and is what tests check
  readonly spec?: any
}

/** The documents of a YAML file. */
export const manifestsOf = (text: string): Manifest[] =>
  parseAllDocuments(text).flatMap((document) => {
    // toJS ignores errors.
    if (document.errors.length > 0) throw document.errors[0]
    const manifest: Manifest | null = document.toJS()
    return manifest === null ? [] : [manifest]
  })

/** The labels of the pods of a program of a release with the name `gatehouse`. */
export const labelsOf = (program: string) => ({
  'app.kubernetes.io/name': 'gatehouse',
  'app.kubernetes.io/instance': 'gatehouse',
  'app.kubernetes.io/component': program
})

/** The only document of this kind, and of this name if one is given. */
export const manifestOf = (all: readonly Manifest[], kind: string, name?: string): Manifest => {
  const [found, ...others] = all.filter((one) => one.kind === kind && (name ?? one.metadata.name) === one.metadata.name)
  if (found === undefined || others.length > 0) throw new Error(`${others.length} other documents of kind ${kind}`)
  return found
}

type Schema = Readonly<Record<string, unknown>>

/** Kubernetes drops unknown fields of a resource; here they are errors, because they are spelling mistakes. */
const closed = (schema: Schema): Schema => {
  const result = Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => !key.startsWith('x-kubernetes-') && key !== 'format')
      .map(([key, value]) => [key, key === 'properties' ? closedProperties(value) : closedValue(value)])
  )
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] === true
  return 'properties' in schema && !isOpen ? { additionalProperties: false, ...result } : result
}

const closedProperties = (properties: unknown): Schema =>
  isObject(properties)
    ? Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, closedValue(schema)]))
    : {}

const closedValue = (value: unknown): unknown => {
  // A flag of Go's regular expressions. Without it the check is stricter.
  if (typeof value === 'string') return value.replace('(?i)', '')
  if (Array.isArray(value)) return value.map(closedValue)
  return isObject(value) ? closed(value) : value
}

interface Crd {
  readonly kind: string
  readonly spec?: {
    readonly group: string
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}

/** Validates resources that are defined by CRDs in these folders. Returns the errors of a resource. */
export const crdValidator = (folders: readonly string[]): ((manifest: Manifest) => string[]) => {
  const ajv = new Ajv({ strict: false, allErrors: true })
  const crds = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.yaml'))
      .flatMap((name) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map((one): Crd => one.toJS()))
  )
  const validators = new Map<string, ValidateFunction>()
  const validatorOf = ({ apiVersion, kind }: Manifest): ValidateFunction | undefined => {
    const key = `${apiVersion} ${kind}`
    const known = validators.get(key)
    if (known !== undefined) return known
    const spec = crds.find((crd) => crd?.spec?.names?.kind === kind)?.spec
    const version = spec?.versions.find(({ name }) => `${spec.group}/${name}` === apiVersion)
    if (version === undefined) return undefined
    const { openAPIV3Schema: schema } = version.schema
    // Ajv accepts any metadata.
    const properties = { ...(isObject(schema.properties) && schema.properties), metadata: {} }
    const validate = ajv.compile({ ...closed({ ...schema, properties }) })
    validators.set(key, validate)
    return validate
  }
  return (manifest) => {
    const { apiVersion, kind } = manifest
    const validate = validatorOf(manifest)
    if (validate === undefined) return [`no CRD for ${kind} of ${apiVersion}`]
    validate(manifest)
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${kind} ${instancePath} ${message} ${JSON.stringify(params)}`
    )
  }
}
