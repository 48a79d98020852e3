import { createSecretKey } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t as root } from 'tap'
import { buildGatewayApp, type Gateway, type GatewayParts } from '../../src/gateway/app.js'
import { type GatewayConfig, gatewayConfig } from '../../src/gateway/config.js'
import type { RedisTimeouts } from '../../src/gateway/redis-connection.js'
import type { RouteTable } from '../../src/gateway/routes/tables/declare.js'
import { floors } from '../../src/gateway/routes/tables/floors.js'
import { phoneBeacon } from '../../src/gateway/routes/tables/phone-beacon.js'
import { transmitters } from '../../src/gateway/routes/tables/transmitters.js'
import { zones } from '../../src/gateway/routes/tables/zones.js'
import { createAppToken } from '../../src/shared/app-token.js'
import { createLogger } from '../../src/shared/logger.js'
import { urlOf } from './address.js'
import type { Teardown } from './child.js'
import { type HttpResponse, type Message, send } from './http.js'
import { type RecordingBackend, startBackend } from './recording-backend.js'

export const API_SECRET = 'a-secret-for-tests-0123456789-abcdef'
export const apiKey = createSecretKey(API_SECRET, 'utf8')

export interface TestGateway {
  readonly url: string
  readonly gateway: Gateway
  readonly backend: RecordingBackend
  /** The log so far, one object per line. */
  readonly logs: Record<string, unknown>[]
  send(path: string, message?: Message): Promise<HttpResponse>
  /** The records of the audit file, after pending writes. */
  auditRecords(): Promise<Record<string, unknown>[]>
}

export interface TestGatewayOptions {
  /** Settings. By default the gateway runs in production mode on loopback. */
  readonly env?: Readonly<Record<string, string>>
  readonly backend?: RecordingBackend
  readonly exchange?: NonNullable<GatewayParts['exchange']>
  readonly now?: NonNullable<GatewayParts['now']>
  readonly tracer?: NonNullable<GatewayParts['tracer']>
  /** Longer than those of a gateway: on a loaded machine a healthy Redis may respond late. */
  readonly redisTimeouts?: RedisTimeouts
  /** All routes that the gateway has by default. Without it, the gateway has `FEW_ROUTES`. */
  readonly hasAllRoutes?: boolean
  /** Registers further hooks, which record properties of requests. */
  readonly extend?: (app: Gateway['app']) => void
}

/**
 * Routes of each kind beside those of sessions and health. Building a gateway with all routes takes four times as long, which
 * is most of the time of many tests.
 */
const FEW_ROUTES: readonly RouteTable[] = [zones, floors, transmitters, phoneBeacon]

/** A listening gateway and a backend that records its requests. */
export const startGateway = async (t: Teardown, options: TestGatewayOptions = {}): Promise<TestGateway> => {
  const backend = options.backend ?? (await startBackend(t))
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-gateway-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const auditFile = join(folder, 'audit.jsonl')
  const config = gatewayConfig({
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: backend.url,
    API_SECRET,
    AUDIT_LOG_FILE: auditFile,
    ...options.env
  })

  const logs: Record<string, unknown>[] = []
  const stream = {
    write: (lines: string) =>
      void logs.push(
        ...lines
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line))
      )
  }
  const log = createLogger({ name: 'gateway', level: config.logLevel, stream })
  const gateway = await buildGatewayApp(withTimeouts(config, options.redisTimeouts), {
    log,
    ...(options.hasAllRoutes !== true && config.routes.file === null && { routes: FEW_ROUTES }),
    ...(options.exchange && { exchange: options.exchange }),
    ...(options.tracer && { tracer: options.tracer }),
    ...(options.now && { now: options.now, monotonicMs: options.now })
  })
  options.extend?.(gateway.app)
  await gateway.app.listen({ ...config.listen })
  // Tests examine request lines only.
  const listening = logs.findIndex(({ msg }) => String(msg).startsWith('Server listening'))
  if (listening !== -1) logs.splice(listening, 1)
  t.teardown(async () => {
    gateway.app.server.closeAllConnections()
    await gateway.app.close()
  })

  const url = urlOf(gateway.app.server)
  return {
    url,
    gateway,
    backend,
    logs,
    send: (path, message) => send(url, path, message),
    async auditRecords() {
      await gateway.audit.reopen()
      const text = await readFile(auditFile, 'utf8')
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    }
  }
}

const withTimeouts = (config: GatewayConfig, timeouts: RedisTimeouts | undefined): GatewayConfig =>
  config.redis === null || timeouts === undefined ? config : { ...config, redis: { ...config.redis, timeouts } }

type Settings = NonNullable<TestGatewayOptions['env']>

const idleGateways = new Map<string, TestGateway[]>()

/**
 * A gateway that the tests of a file share, because starting one takes longer than most tests. Not for tests that use login
 * attempts or change anything but the response of the backend.
 */
export const borrowGateway = async (t: Teardown, env: Settings = {}): Promise<TestGateway> => {
  const key = JSON.stringify(env)
  const idle = idleGateways.get(key) ?? []
  if (!idleGateways.has(key)) {
    idleGateways.set(key, idle)
    root.teardown(() => void idleGateways.delete(key))
  }
  const gateway = idle.pop() ?? (await startGateway(root, { env }))
  const { backend, logs } = gateway
  const { respond } = backend
  const before = (await gateway.auditRecords()).length
  t.teardown(() => {
    backend.respond = respond
    backend.requests.length = 0
    logs.length = 0
    idle.push(gateway)
  })
  return { ...gateway, auditRecords: async () => (await gateway.auditRecords()).slice(before) }
}

/** A valid token of a user with this role. */
export const tokenOf = (role: string, claims: Readonly<Record<string, unknown>> = {}): string =>
  createAppToken({ userId: `${role}-1`, email: `${role}@example.com`, role, ...claims }, apiKey, {
    format: 'jwt',
    lifetimeSeconds: 3600
  })

/** The headers of a signed-in browser with a CSRF token. */
export const browserHeaders = (token: string | null = tokenOf('operator')): Record<string, string> => ({
  cookie: `${token === null ? '' : `auth_token=${token}; `}csrf_token=t0ken`,
  'x-csrf-token': 't0ken'
})
