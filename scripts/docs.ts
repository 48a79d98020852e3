/**
 * `npm run docs` generates the parts of the docs that come from the code: the tables of settings, the JSON Schema of the
 * relay config file, and the worked plans for large services. Tests compare them with the code.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { SCALING_PAGE, withCurrentPlans } from './capacity/scaling-page.js'
import { CONFIGURATION_PAGE, RELAY_CONFIG_SCHEMA, relayConfigSchemaText, withCurrentTables } from './settings-docs.js'

writeFileSync(CONFIGURATION_PAGE, withCurrentTables(readFileSync(CONFIGURATION_PAGE, 'utf8')))
writeFileSync(RELAY_CONFIG_SCHEMA, relayConfigSchemaText())
writeFileSync(SCALING_PAGE, withCurrentPlans(readFileSync(SCALING_PAGE, 'utf8')))
