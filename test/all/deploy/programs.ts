import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { secretKey, signJwt } from '../../../src/shared/jwt.js'
import type { Child } from '../../helper/child.js'
import { API_SECRET } from '../../helper/gateway.js'
import { startProgram } from '../../helper/program.js'
import { shippedEnvironment } from './shipped.js'

export const HMAC_SECRET = '0123456789abcdef'.repeat(4)
export const PUBLISH_KEY = 'fedcba9876543210'.repeat(4)

const KEY = secretKey(HMAC_SECRET)

/** A connection token that the relay accepts. */
export const relayTokenOf = (user: string): string => signJwt({ sub: user }, KEY, { lifetimeSeconds: 3600 })

/** A built program that listens, with its shipped environment file. */
export interface Running {
  readonly program: Child
  /** `127.0.0.1:port`. */
  readonly address: string
  readonly url: string
}

type Env = Readonly<Record<string, string>>

const run = async (t: Test, name: 'gateway' | 'relay', env: Env): Promise<Running> => {
  const program = await startProgram(t, `dist/src/${name}/main.js`, {
    ...shippedEnvironment(`deploy/systemd/${name}.env`),
    ...env
  })
  const [, address = ''] = /http:\/\/([\d.:]+)/.exec(await program.waitForLine('listening at')) ?? []
  return { program, address, url: `http://${address}` }
}

export const runGateway = (t: Test, backendUrl: string, env: Env = {}): Promise<Running> =>
  run(t, 'gateway', {
    GATEWAY_PORT: '0',
    BACKEND_URL: backendUrl,
    API_SECRET,
    AUDIT_LOG_FILE: '/dev/null',
    ...env
  })

/** `client` is the section of this name in the relay's configuration file. */
export const runRelay = (t: Test, client: Readonly<Record<string, unknown>>, env: Env = {}): Promise<Running> => {
  const file = join(t.testdirName, `relay-${Math.random().toString(36).slice(2)}.json`)
  const floor = { allow_subscribe_for_client: true, history_size: 10_000, history_ttl: '600s', force_recovery: true }
  writeFileSync(file, JSON.stringify({ client, channel: { namespaces: [{ name: 'floor', ...floor }] } }))
  return run(t, 'relay', {
    RELAY_PORT: '0',
    // Takes a CPU second; test/relay/main.test.ts covers it.
    RELAY_WARM_UP: 'false',
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    REALTIME_API_KEY: PUBLISH_KEY,
    RELAY_CONFIG: file,
    ...env
  })
}
