import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml'
import { withTable } from './page-table.js'
import { ROOT } from './root.js'

export const HELM_VALUES_PAGE = join(ROOT, 'docs/reference/helm-values.md')

const VALUES_FILE = join(ROOT, 'deploy/helm/values.yaml')
const SCHEMA_FILE = join(ROOT, 'deploy/helm/values.schema.json')

export interface HelmValue {
  /** Such as `gateway.oidc.issuer`. */
  readonly path: string
  /** The comment in `values.yaml`; '' without one. */
  readonly about: string
  readonly schema: ValueSchema
  readonly fallback: unknown
}

interface ValueSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, ValueSchema>>
}

/** All values of the chart in the order of `values.yaml`. Objects of any content, such as `settings`, are one value. */
export const helmValues = (
  yaml = readFileSync(VALUES_FILE, 'utf8'),
  schema: ValueSchema = JSON.parse(readFileSync(SCHEMA_FILE, 'utf8'))
): HelmValue[] => {
  const { contents } = parseDocument(yaml)
  if (!isMap(contents)) throw new Error('values.yaml must be a map')
  return valuesIn(contents, schema, '')
}

const valuesIn = (map: YAMLMap, { properties = {} }: ValueSchema, prefix: string): HelmValue[] =>
  map.items.flatMap((pair, index) => {
    const name = String(pair.key)
    const schema = properties[name]
    if (schema === undefined) throw new Error(`values.schema.json does not have ${prefix}${name}`)
    const path = `${prefix}${name}`
    if (schema.properties !== undefined && isMap(pair.value)) return valuesIn(pair.value, schema, `${path}.`)
    const about = commentOf(pair) ?? (index === 0 ? map.commentBefore : null) ?? ''
    const fallback = isScalar(pair.value) ? pair.value.value : JSON.parse(JSON.stringify(pair.value))
    return [{ path, about: about.replaceAll(/\s*\n\s*/g, ' ').trim(), schema, fallback }]
  })

const commentOf = ({ key }: Pair): string | null | undefined => (isScalar(key) ? key.commentBefore : null)

/** Returns the page with its tables regenerated, one for each part of the chart. */
export const withCurrentValues = (page: string): string => {
  const values = helmValues()
  const partOf = ({ path }: HelmValue): string => /^(gateway|relay)\./.exec(path)?.[1] ?? 'common'
  return ['common', 'gateway', 'relay'].reduce(
    (text, part) => withTable(text, `${part} values`, valuesTable(values.filter((value) => partOf(value) === part))),
    page
  )
}

const valuesTable = (values: readonly HelmValue[]): string =>
  [
    '| value | default | kind | meaning |',
    '|---|---|---|---|',
    ...values.map(
      ({ path, about, schema, fallback }) =>
        `| \`${path}\` | ${fallbackText(fallback)} | ${kindOf(schema)} | ${about} |`
    )
  ].join('\n')

const LONGEST_FALLBACK = 60

const fallbackText = (fallback: unknown): string => {
  if (fallback === '') return 'empty'
  const text = typeof fallback === 'string' ? fallback : JSON.stringify(fallback)
  return text.length > LONGEST_FALLBACK ? '[values.yaml](../../deploy/helm/values.yaml)' : `\`${text}\``
}

const KINDS: Readonly<Record<string, string>> = {
  array: 'list',
  object: 'object',
  string: 'text',
  boolean: 'true or false'
}

const kindOf = ({ type, enum: choices, minimum, maximum }: ValueSchema): string => {
  if (choices !== undefined) return `one of ${choices.join(', ')}`
  if (type === 'integer')
    return maximum === undefined ? `number from ${minimum}` : `number from ${minimum} to ${maximum}`
  return KINDS[String(type)] ?? 'any'
}
