import { type RelayConfig, relayConfig } from '../../src/relay/config/config.js'
import { type Environment, SettingsError } from '../../src/shared/env.js'

export const SECRETS = { REALTIME_HMAC_SECRET: 'a secret', REALTIME_API_KEY: 'a key' }

export const PRODUCTION = {
  NODE_ENV: 'production',
  REALTIME_HMAC_SECRET: '0123456789abcdef'.repeat(4),
  REALTIME_API_KEY: 'fedcba9876543210'.repeat(4)
}

const noFile = (): string => {
  throw new Error('no file is configured')
}

export const configOf = (environment: Environment): RelayConfig =>
  relayConfig({ NODE_ENV: 'development', ...environment }, noFile)

/** The configuration with this file; content that is not a string is converted to JSON. */
export const configWith = (file: unknown, environment: Environment = SECRETS): RelayConfig =>
  relayConfig({ NODE_ENV: 'development', ...environment, RELAY_CONFIG: '/etc/relay.json' }, () =>
    typeof file === 'string' ? file : JSON.stringify(file)
  )

export const errorsOf = (read: () => RelayConfig): readonly string[] => {
  try {
    read()
    return []
  } catch (error) {
    if (error instanceof SettingsError) return error.errors
    throw error
  }
}
