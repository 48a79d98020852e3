import { join } from 'node:path'
import { demoSettings } from '../../demo/backend/config.js'
import { gatewaySettings } from '../../src/gateway/config.js'
import { RelayConfigFileSchema } from '../../src/relay/config/schema.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import type { Setting, Settings } from '../../src/shared/env.js'
import { publisherSettings } from '../../src/shared/publisher.js'
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

/** The JSON Schema of the relay config file, as published in `docs/`. */
export const relayConfigSchemaText = (): string => `${JSON.stringify(RelayConfigFileSchema, null, 2)}\n`

/** Returns the page with every table of settings regenerated from the code. */
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

const KIB = 1024
const MIB = 1024 * KIB

const sizeText = (bytes: number): string => (bytes < MIB ? `${bytes / KIB}KiB` : `${bytes / MIB}MiB`)

const defaultText = ({ fallback, unit }: Setting): string => {
  if (fallback === null) return 'unset'
  if (Array.isArray(fallback)) return 'empty'
  return `\`${unit === 'bytes' ? sizeText(Number(fallback)) : String(fallback)}\``
}
