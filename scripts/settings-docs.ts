import { join } from 'node:path'
import { demoSettings } from '../demo/backend/config.js'
import { gatewaySettings } from '../src/gateway/config.js'
import { RelayConfigFileSchema } from '../src/relay/config/schema.js'
import { relaySettings } from '../src/relay/config/settings.js'
import type { Setting, Settings } from '../src/shared/env.js'
import { publisherSettings } from '../src/shared/publisher.js'
import { withTable } from './page-table.js'
import { ROOT } from './root.js'

export const CONFIGURATION_PAGE = join(ROOT, 'docs/reference/configuration.md')

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
  Object.entries(TABLES).reduce(
    (text, [name, settings]) => withTable(text, `settings of the ${name}`, settingsTable(settings)),
    page
  )

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
