import { join } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import { ruleOf } from '../../src/relay/config/file.js'
import { RelayConfigFileSchema } from '../../src/relay/config/schema.js'
import { withTable } from './page-table.js'
import { ROOT } from './root.js'

export const RELAY_FILE_PAGE = join(ROOT, 'docs/reference/relay-config-file.md')

export const RELAY_CONFIG_SCHEMA = join(ROOT, 'docs/relay-config.schema.json')

/** The JSON Schema of the relay config file, as published in `docs/`. */
export const relayConfigSchemaText = (): string => `${JSON.stringify(RelayConfigFileSchema, null, 2)}\n`

interface Option {
  /** Such as `client.token.audience`; `channel.namespaces[].name` for the entries of a list. */
  readonly path: string
  readonly schema: TSchema
}

/** All options of the config file, in the order of the schema. */
export const relayOptions = (schema: TSchema = RelayConfigFileSchema, prefix = ''): Option[] =>
  Object.entries<TSchema>(schema.properties).flatMap(([name, property]) => {
    const path = `${prefix}${name}`
    if (property.type === 'object' && property.properties !== undefined) return relayOptions(property, `${path}.`)
    if (property.items?.type === 'object' && !isDescribedAsWhole(property))
      return relayOptions(property.items, `${path}[].`)
    return [{ path, schema: property }]
  })

/** A list with a default has one row for all fields of its entries. */
const isDescribedAsWhole = ({ default: fallback }: TSchema): boolean => fallback !== undefined

const NAMESPACE = 'channel.namespaces[].'
const PROXY = 'proxies[].'

/** Options of the default proxies are those of a named one. */
const OF_DEFAULT_PROXY = /^(?:client\.proxy\.\w+|channel\.proxy\.\w+|rpc\.proxy)\.(?!enabled$)/

/** Options of channels without a namespace are those of a namespace. */
const WITHOUT_NAMESPACE = 'channel.without_namespace.'

/** Returns the page with its tables of options regenerated from the schema. */
export const withCurrentOptions = (page: string): string => {
  const options = relayOptions().filter(
    ({ path }) => !path.startsWith(WITHOUT_NAMESPACE) && !OF_DEFAULT_PROXY.test(path)
  )
  const startsWith = (prefix: string) => options.filter(({ path }) => path.startsWith(prefix))
  const namespace = startsWith(NAMESPACE)
  const channel = startsWith('channel.').filter((option) => !namespace.includes(option))
  const client = startsWith('client.')
  const proxy = startsWith(PROXY)
  const others = options.filter((option) => ![...namespace, ...channel, ...client, ...proxy].includes(option))
  const tables = { namespace, channel, client, proxy, other: others }
  return Object.entries(tables).reduce(
    (text, [name, rows]) => withTable(text, `${name} options`, optionsTable(rows)),
    page
  )
}

const optionsTable = (options: readonly Option[]): string =>
  [
    '| option | default | must be | meaning |',
    '|---|---|---|---|',
    ...options.map(
      ({ path, schema }) =>
        `| \`${path.replace(NAMESPACE, '').replace(PROXY, '')}\` | ${defaultText(schema)} | ${ruleOf(schema)} | ${meaningOf(schema)} |`
    )
  ].join('\n')

const defaultText = ({ default: value }: TSchema): string => {
  if (value === undefined) return 'none'
  if (typeof value === 'object') return 'empty'
  return `\`${String(value)}\``
}

const meaningOf = ({ description = '' }: TSchema): string =>
  description.replace(/^Gatehouse only: (.)/, (_, first: string) => `*Gatehouse only.* ${first.toUpperCase()}`)
