import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../../scripts/lib/root.js'
import { WITH_BUILT_PACKAGES } from '../../helper/built-packages.js'
import { startChild, type Teardown } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { freePort } from '../../helper/free-port.js'
import { startProgram } from '../../helper/program.js'

const FOLDER = join(ROOT, 'examples/orders')

export const PASSWORD = 'a password for tests'

export interface ExampleStack {
  /** The address of the gateway for browsers. */
  readonly url: string
  /** The backend's own address, which only the gateway uses. */
  readonly backendUrl: string
}

/** The backend of the examples, gateway and relay with production rules, behind one address. */
export const startExample = async (t: Teardown, webRoot: string): Promise<ExampleStack> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-example-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [gatewayPort, relayPort, backendPort] = [await freePort(), await freePort(), await freePort()]
  const tokenSecret = newSecret()
  const shared = { REALTIME_HMAC_SECRET: newSecret(), REALTIME_API_KEY: newSecret() }
  const url = `http://localhost:${gatewayPort}`
  const backendUrl = `http://127.0.0.1:${backendPort}`

  const relay = await startProgram(t, 'dist/src/relay/main.js', {
    NODE_ENV: 'production',
    RELAY_PORT: `${relayPort}`,
    RELAY_WARM_UP: 'false',
    RELAY_CONFIG: join(FOLDER, 'relay.yaml'),
    ...shared
  })
  const program = await startChild(t, process.execPath, [...WITH_BUILT_PACKAGES, join(FOLDER, 'backend.js')], {
    PATH: environment.path,
    PORT: `${backendPort}`,
    API_SECRET: tokenSecret,
    PASSWORD,
    REALTIME_PUBLISH_URL: `http://127.0.0.1:${relayPort}/api`,
    ...shared
  })
  const gateway = await startProgram(t, 'dist/src/gateway/main.js', {
    NODE_ENV: 'production',
    GATEWAY_PORT: `${gatewayPort}`,
    BACKEND_URL: backendUrl,
    API_SECRET: tokenSecret,
    COOKIE_SECURE: 'false',
    RELAY_UPSTREAM: `http://127.0.0.1:${relayPort}`,
    CSP_INLINE: 'refuse',
    LOGIN_LIMIT_MAX: '100',
    AUDIT_LOG_FILE: join(folder, 'audit.jsonl'),
    WEB_ROOT: webRoot
  })
  await Promise.all([relay, program, gateway].map((child) => child.waitForLine('listening')))
  return { url, backendUrl }
}

const newSecret = (): string => randomBytes(32).toString('hex')
