import { gatewaySettings } from '../../../src/gateway/settings.js'
import { relaySettings } from '../../../src/relay/config/settings.js'

const SETTINGS = { gateway: gatewaySettings, relay: relaySettings } as const
export const PROGRAMS = ['gateway', 'relay'] as const
export type Program = (typeof PROGRAMS)[number]

const NODE_VARIABLES: readonly string[] = ['NODE_COMPILE_CACHE']

/** Every setting also exists as `<name>_FILE`. */
export const isSetting = (program: Program, name: string): boolean =>
  NODE_VARIABLES.includes(name) || name in SETTINGS[program] || name.replace(/_FILE$/, '') in SETTINGS[program]

/** The settings without which the programs do not start in production. */
const REQUIRED = {
  gateway: ['BACKEND_URL', 'API_SECRET'],
  relay: ['REALTIME_HMAC_SECRET', 'REALTIME_API_KEY']
} as const

export const missingSettings = (program: Program, names: readonly string[]): string[] =>
  REQUIRED[program].filter((name) => !names.includes(name) && !names.includes(`${name}_FILE`))
