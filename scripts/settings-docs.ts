/**
 * `npm run docs` writes the tables of docs/configuration.md from the settings that the programs read, and the JSON Schema
 * of the relay's file. Tests compare, so that neither can say anything else than the code.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { demoSettings } from '../demo/backend/config.js'
import { gatewaySettings } from '../src/gateway/config.js'
import { RelayConfigFileSchema } from '../src/relay/config-schema.js'
import { relaySettings } from '../src/relay/settings.js'
import type { Setting, Settings } from '../src/shared/env.js'
import { publisherSettings } from '../src/shared/publisher.js'
import { ROOT } from './root.js'

export const CONFIGURATION_PAGE = join(ROOT, 'docs/configuration.md')

export const RELAY_CONFIG_SCHEMA = join(ROOT, 'docs/relay-config.schema.json')

const TABLES: Readonly<Record<string, Settings>> = {
  gateway: gatewaySettings,
  relay: relaySettings,
  publisher: publisherSettings,
  demo: demoSettings
}

/** The schema as it is published. */
export const relayConfigSchemaText = (): string => `${JSON.stringify(RelayConfigFileSchema, null, 2)}\n`

/** The page with every table between its markers as the code has it now. */
export const withCurrentTables = (page: string): string =>
  Object.entries(TABLES).reduce((text, [name, settings]) => {
    const [begin, end] = [`<!-- settings of the ${name} -->`, `<!-- end of settings of the ${name} -->`]
    const from = text.indexOf(begin)
    const to = text.indexOf(end)
    if (from === -1 || to < from) throw new Error(`docs/configuration.md has no place for the ${name}'s settings`)
    return `${text.slice(0, from + begin.length)}\n${settingsTable(settings)}\n${text.slice(to)}`
  }, page)

const settingsTable = (settings: Settings): string =>
  [
    '| variable | default | must be | meaning |',
    '|---|---|---|---|',
    ...Object.entries(settings).map(
      ([name, setting]) => `| \`${name}\` | ${defaultText(setting)} | ${setting.rule} | ${setting.about} |`
    )
  ].join('\n')

const MIB = 1024 * 1024

const defaultText = ({ fallback, unit }: Setting): string => {
  if (fallback === null) return 'unset'
  if (Array.isArray(fallback)) return 'empty'
  return `\`${unit === 'bytes' ? `${Number(fallback) / MIB}MiB` : String(fallback)}\``
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(CONFIGURATION_PAGE, withCurrentTables(readFileSync(CONFIGURATION_PAGE, 'utf8')))
  writeFileSync(RELAY_CONFIG_SCHEMA, relayConfigSchemaText())
}
