import { readFileSync } from 'node:fs'
import { checkFiles } from '../gateway/check-files.js'
import { gatewayConfig } from '../gateway/config.js'
import { gatewaySettings } from '../gateway/settings.js'
import { relayConfig } from '../relay/config/config.js'
import { FILE_ERROR_PREFIX } from '../relay/config/file.js'
import { migrationNotes } from '../relay/config/migration-notes.js'
import { type Environment, SettingsError } from '../shared/env.js'
import { errorCode } from '../shared/error-code.js'
import { unknownSettingLine, unknownSettings } from '../shared/unknown-settings.js'

/** In place of secrets that the environment provides at run time. */
const SECRET = '0'.repeat(64)

/** One line for each error and warning; without errors the configuration is valid. */
export interface CheckResult {
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
}

/** Checks a configuration file of the relay. For a file of Centrifugo, the warnings name options whose defaults are stricter. */
export const checkConfigFile = (file: string): CheckResult => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return { errors: [`${file} cannot be read (${errorCode(error)})`], warnings: [] }
  }
  const warnings = migrationNotes(file, () => text)
  try {
    relayConfig({ RELAY_CONFIG: file, REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET }, () => text)
    return { errors: [], warnings }
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    // The setting is unknown to the person who gave the file as an argument.
    return { errors: error.errors.map((line) => line.replace(FILE_ERROR_PREFIX, '').trim()), warnings }
  }
}

/**
 * Checks the settings of the gateway and the files that they name. The warnings name settings and parts of the files that
 * have no effect, and operations that need no token.
 */
export const checkGateway = async (environment: Environment): Promise<CheckResult> => {
  const unknown = unknownSettings(gatewaySettings, environment).map(unknownSettingLine)
  try {
    return { errors: [], warnings: [...unknown, ...(await checkFiles(gatewayConfig(environment)))] }
  } catch (error) {
    if (error instanceof SettingsError) return { errors: error.errors, warnings: unknown }
    throw error
  }
}
