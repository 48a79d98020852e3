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
    if (property.type === 'object') return relayOptions(property, `${path}.`)
    if (property.items?.type === 'object') return relayOptions(property.items, `${path}[].`)
    return [{ path, schema: property }]
  })

const NAMESPACE = 'channel.namespaces[].'

/** Options of channels without a namespace are those of a namespace. */
const WITHOUT_NAMESPACE = 'channel.without_namespace.'

/** Returns the page with its tables of options regenerated from the schema. */
export const withCurrentOptions = (page: string): string => {
  const options = relayOptions().filter(({ path }) => !path.startsWith(WITHOUT_NAMESPACE))
  const startsWith = (prefix: string) => options.filter(({ path }) => path.startsWith(prefix))
  const namespace = startsWith(NAMESPACE)
  const channel = startsWith('channel.').filter((option) => !namespace.includes(option))
  const client = startsWith('client.')
  const others = options.filter((option) => ![...namespace, ...channel, ...client].includes(option))
  const tables = { namespace, channel, client, other: others }
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
        `| \`${path.replace(NAMESPACE, '')}\` | ${defaultText(schema)} | ${ruleOf(schema)} | ${meaningOf(schema)} |`
    )
  ].join('\n')

const defaultText = ({ default: value }: TSchema): string => {
  if (value === undefined) return 'none'
  if (Array.isArray(value)) return 'empty'
  return `\`${String(value)}\``
}

const meaningOf = ({ description = '' }: TSchema): string =>
  description.replace(/^Gatehouse only: (.)/, (_, first: string) => `*Gatehouse only.* ${first.toUpperCase()}`)
