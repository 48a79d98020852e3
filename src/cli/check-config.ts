import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { checkGatewayFiles } from '../gateway/check-files.js'
import type { GatewayConfig } from '../gateway/config.js'
import { gatewaySettings } from '../gateway/settings.js'
import { type RelayConfig, relayConfig } from '../relay/config/config.js'
import { FILE_ERROR_PREFIX } from '../relay/config/file.js'
import { migrationNotes } from '../relay/config/migration-notes.js'
import { relaySettings } from '../relay/config/settings.js'
import { type Environment, readSettings, SettingsError } from '../shared/env.js'
import { errorCode } from '../shared/error-code.js'
import { unknownSettingLine, unknownSettings } from '../shared/unknown-settings.js'
import type { CheckResult } from './check-result.js'
import { configLines, withPointerLines } from './config-lines.js'
import { crossCheck } from './cross-check.js'

/** In place of secrets that the environment provides at run time. */
const SECRET = '0123456789abcdef'.repeat(4)

interface ProgramCheck<Config> extends CheckResult {
  /** Null if there is an error. */
  readonly config: Config | null
}

/** Checks a configuration file of the relay. For a file of Centrifugo, the warnings name options whose defaults are stricter. */
export const checkConfigFile = (file: string, environment: Environment): CheckResult => {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return { errors: [`${file} cannot be read (${errorCode(error)})`], warnings: [] }
  }
  // A file alone is checked with the rules of production only on request.
  const NODE_ENV = environment.NODE_ENV || 'development'
  const { errors, warnings } = checkRelayWith(
    { NODE_ENV, RELAY_CONFIG: file, REALTIME_HMAC_SECRET: SECRET, REALTIME_API_KEY: SECRET },
    () => text
  )
  // The setting is unknown to the person who gave the file as an argument.
  return { errors: errors.map((line) => line.replace(/^RELAY_CONFIG /, '')), warnings }
}

/** Checks both programs, and what they must agree about. Each line begins with the name of its program. */
export const checkBoth = async (environment: Environment): Promise<CheckResult> => {
  const gateway = await checkGateway(environment)
  const relay = checkRelay(environment)
  const lines = (name: 'errors' | 'warnings'): string[] => named({ gateway: gateway[name], relay: relay[name] })
  const cross =
    gateway.config === null || relay.config === null
      ? { errors: [], warnings: [] }
      : crossCheck(gateway.config, relay.config, environment)
  // A variable that resembles a setting of one program may be a setting of the other.
  const isSettingOfOther = (line: string): boolean => {
    const [, variable = ''] = /^\w+: (\w+) is not a setting\./.exec(line) ?? []
    return Object.hasOwn(gatewaySettings, variable) || Object.hasOwn(relaySettings, variable)
  }
  return {
    errors: [...lines('errors'), ...cross.errors],
    warnings: [...lines('warnings').filter((line) => !isSettingOfOther(line)), ...cross.warnings]
  }
}

/** Lines of both programs occur once. */
const named = (lines: { readonly gateway: readonly string[]; readonly relay: readonly string[] }): string[] => [
  ...lines.gateway.map((line) => (lines.relay.includes(line) ? line : `gateway: ${line}`)),
  ...lines.relay.filter((line) => !lines.gateway.includes(line)).map((line) => `relay: ${line}`)
]

/** Checks the settings of the relay and the file that `RELAY_CONFIG` names. */
export const checkRelay = (environment: Environment): ProgramCheck<RelayConfig> => {
  const { errors, warnings, config } = checkRelayWith(environment, (path) => readFileSync(path, 'utf8'))
  return {
    errors,
    warnings: [...unknownSettings(relaySettings, environment).map(unknownSettingLine), ...warnings],
    config
  }
}

const checkRelayWith = (environment: Environment, readFile: (path: string) => string): ProgramCheck<RelayConfig> => {
  const { RELAY_CONFIG: file } = readSettings({ RELAY_CONFIG: relaySettings.RELAY_CONFIG }, environment, [])
  const warnings = file === null ? [] : migrationNotes(file, readFile)
  try {
    return { errors: [], warnings, config: relayConfig(environment, readFile) }
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    if (file === null) return { errors: error.errors, warnings, config: null }
    const located = error.errors.map((line) => withLine(line, file, readFile))
    return { errors: located, warnings, config: null }
  }
}

/** `RELAY_CONFIG: client.ping_interval must …` with the file and the line of the option. */
const withLine = (error: string, file: string, readFile: (path: string) => string): string => {
  if (!error.startsWith(`${FILE_ERROR_PREFIX} `)) return error
  const message = error.slice(FILE_ERROR_PREFIX.length + 1)
  // Without a line: the file has another format, and the error names its line.
  if (message.startsWith(`${file} `)) return `RELAY_CONFIG ${message}`
  const line = configLines(file, readFile(file))(message.split(' ', 1).join())
  return `RELAY_CONFIG ${basename(file)}${line === null ? '' : `:${line}`}: ${message}`
}

/**
 * Checks the settings of the gateway and the files that they name. The warnings name settings and parts of the files that
 * have no effect, and operations that need no token.
 */
export const checkGateway = async (environment: Environment): Promise<ProgramCheck<GatewayConfig>> => {
  const unknown = unknownSettings(gatewaySettings, environment).map(unknownSettingLine)
  const { config, errors, warnings } = await checkGatewayFiles(environment)
  const { GATEWAY_ROUTES: file } = readSettings({ GATEWAY_ROUTES: gatewaySettings.GATEWAY_ROUTES }, environment, [])
  return {
    errors: file === null ? errors : withPointerLines(errors, file),
    warnings: [...unknown, ...cookieWarnings(config), ...warnings],
    config
  }
}

const LOCAL_ORIGIN = /^http:\/\/(?:localhost|127\.0\.0\.1)(?::|$)/

/** Right for pages of this machine, which has no TLS, such as the project of `gatehouse init`; wrong for all others. */
const cookieWarnings = (config: GatewayConfig | null): string[] =>
  config?.production && !config.cookies.secure && !LOCAL_ORIGIN.test(config.csrf.publicOrigin ?? '')
    ? ['COOKIE_SECURE is false: browsers send sessions over plain HTTP too. Remove it where there is TLS']
    : []
