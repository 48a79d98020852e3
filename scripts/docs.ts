/**
 * `npm run docs`: writes the generated parts of the documentation, namely the tables of settings, the tables and the JSON
 * Schema of the relay's configuration file, the values of the Helm chart, and the capacity plans. Tests check that they are current.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { SCALING_PAGE, withCurrentPlans } from './lib/capacity/scaling-page.js'
import { runCommand } from './lib/command.js'
import { HELM_VALUES_PAGE, withCurrentValues } from './lib/helm-values-docs.js'
import {
  RELAY_CONFIG_SCHEMA,
  RELAY_FILE_PAGE,
  relayConfigSchemaText,
  withCurrentOptions
} from './lib/relay-options-docs.js'
import { CONFIGURATION_PAGE, withCurrentTables } from './lib/settings-docs.js'

await runCommand('Usage: npm run docs', (args) => {
  parseArgs({ args: [...args], options: {} })
  writeFileSync(CONFIGURATION_PAGE, withCurrentTables(readFileSync(CONFIGURATION_PAGE, 'utf8')))
  writeFileSync(RELAY_FILE_PAGE, withCurrentOptions(readFileSync(RELAY_FILE_PAGE, 'utf8')))
  writeFileSync(RELAY_CONFIG_SCHEMA, relayConfigSchemaText())
  writeFileSync(HELM_VALUES_PAGE, withCurrentValues(readFileSync(HELM_VALUES_PAGE, 'utf8')))
  writeFileSync(SCALING_PAGE, withCurrentPlans(readFileSync(SCALING_PAGE, 'utf8')))
  return 0
})
