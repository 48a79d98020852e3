/**
 * `npm run docs` writes what documents take from the code: the tables of settings, the JSON Schema of the relay's file, and
 * the worked plans for large services. Tests compare, so that none of them can say anything else than the code.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { SCALING_PAGE, withCurrentPlans } from './capacity/scaling-page.js'
import { CONFIGURATION_PAGE, RELAY_CONFIG_SCHEMA, relayConfigSchemaText, withCurrentTables } from './settings-docs.js'

writeFileSync(CONFIGURATION_PAGE, withCurrentTables(readFileSync(CONFIGURATION_PAGE, 'utf8')))
writeFileSync(RELAY_CONFIG_SCHEMA, relayConfigSchemaText())
writeFileSync(SCALING_PAGE, withCurrentPlans(readFileSync(SCALING_PAGE, 'utf8')))
