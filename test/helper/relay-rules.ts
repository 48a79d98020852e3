import { type RelayConfig, relayConfig } from '../../src/relay/config/config.js'
import { secretKey, signJwt } from '../../src/shared/jwt.js'

export const HMAC_SECRET = 'the secret of relay tokens, at least 32 bytes'
export const API_KEY = 'the key of the publish API, at least 32 bytes'

/** A relay config file for tests. */
export type ConfigFile = Readonly<Record<string, unknown>>

/** The config of a relay with this file, or the defaults. */
export const configOf = (file?: ConfigFile, env: Readonly<Record<string, string>> = {}): RelayConfig =>
  relayConfig(
    {
      NODE_ENV: 'test',
      REALTIME_HMAC_SECRET: HMAC_SECRET,
      REALTIME_API_KEY: API_KEY,
      RELAY_PORT: '0',
      ...(file === undefined ? {} : { RELAY_CONFIG: 'relay.json' }),
      ...env
    },
    () => JSON.stringify(file)
  )

const KEY = secretKey(HMAC_SECRET)

export interface TokenOptions {
  readonly nowMs?: number
  readonly lifetimeSeconds?: number
}

export const relayToken = (
  claims: Readonly<Record<string, unknown>>,
  { nowMs = Date.now(), lifetimeSeconds = 3600 }: TokenOptions = {}
): string => signJwt(claims, KEY, { lifetimeSeconds, nowMs })
