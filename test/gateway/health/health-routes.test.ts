import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { type Test, t } from 'tap'
import { AccessRules } from '../../../src/gateway/access.js'
import { DatabaseHealth } from '../../../src/gateway/health/database-health.js'
import { type HealthOptions, healthRoutes } from '../../../src/gateway/health/health-routes.js'
import { mountRoutes } from '../../../src/gateway/routes/mount-routes.js'
import { probes } from '../../../src/gateway/routes/tables/probes.js'
import { createLogger } from '../../../src/shared/logger.js'
import { eventually } from '../../helper/eventually.js'
import { browse } from '../../helper/exact-http.js'
import { freePort } from '../../helper/free-port.js'
import { startGateway } from '../../helper/gateway.js'
import { sendRaw } from '../../helper/http.js'
import { startPostgres } from '../../helper/postgres.js'
import { startBackend } from '../../helper/recording-backend.js'

interface HealthApp {
  readonly app: FastifyInstance
  readonly logs: readonly string[]
}

/** A dependency that must not be called. */
const notCalled = (): never => {
  throw new Error('this dependency must not be called')
}

const startApp = (t: Test, parts: Partial<HealthOptions> = {}): HealthApp => {
  const logs: string[] = []
  const log = createLogger({ name: 'test', level: 'trace', stream: { write: (line) => void logs.push(line) } })
  // Without the cast the instance has the type of our logger, which FastifyInstance does not accept.
  const app: FastifyInstance = Fastify({ loggerInstance: log as FastifyBaseLogger })
  t.teardown(() => app.close())
  const local = healthRoutes({
    isStopping: () => false,
    database: { check: notCalled },
    backend: notCalled,
    upstreams: new Map(),
    ...parts
  })
  mountRoutes(app, [probes], {
    access: new AccessRules(),
    forward: notCalled,
    local,
    uploadBytes: 0,
    unknownPaths: 'forward'
  })
  return { app, logs }
}

const UP = { status: 'up', latencyMs: 3 } as const
const DOWN = { status: 'down', reason: 'timeout' } as const
const always =
  <State>(state: State) =>
  async (): Promise<State> =>
    state

interface Row {
  readonly path: string
  readonly when: string
  readonly parts: Partial<HealthOptions>
  readonly status: number
  readonly body: object
}

const TABLE: readonly Row[] = [
  { path: '/api/health', when: 'while the gateway runs', parts: {}, status: 200, body: { status: 'ok' } },
  {
    path: '/api/health',
    when: 'during the shutdown delay',
    parts: { isStopping: () => true },
    status: 503,
    body: { status: 'stopping' }
  },
  {
    path: '/api/health/ready',
    when: 'during the shutdown delay',
    parts: { isStopping: () => true },
    status: 503,
    body: { status: 'stopping' }
  },
  {
    path: '/api/health/ready',
    when: 'while the backend is up',
    parts: { backend: always(UP) },
    status: 200,
    body: { status: 'ready', backend: UP }
  },
  {
    path: '/api/health/ready',
    when: 'while the backend is down',
    parts: { backend: always(DOWN) },
    status: 503,
    body: { status: 'unavailable', backend: DOWN }
  },
  {
    path: '/api/health/database',
    when: 'while the database is up',
    parts: { database: { check: always(UP) } },
    status: 200,
    body: UP
  },
  {
    path: '/api/health/database',
    when: 'while the database is down',
    parts: { database: { check: always(DOWN) } },
    status: 503,
    body: DOWN
  },
  {
    path: '/api/health/database',
    when: 'where no database is configured',
    parts: { database: null },
    status: 200,
    body: { status: 'not configured' }
  }
]

for (const { path, when, parts, status, body } of TABLE) {
  t.test(`${path} ${when}`, async (t) => {
    t.test(`${path} ${when} responds with ${status}`, async (t) => {
      const { app } = startApp(t, parts)

      const response = await app.inject(path)

      t.equal(response.statusCode, status)
      t.strictSame(response.json(), body)
      t.equal(response.headers['cache-control'], 'no-store')
      t.match(response.headers['content-type'], /^application\/json/)
    })

    t.test(`HEAD ${path} ${when} has the same headers and no body`, async (t) => {
      const { app } = startApp(t, parts)

      const url = await app.listen({ host: '127.0.0.1', port: 0 })
      const response = await sendRaw(url, `HEAD ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)

      t.equal(response.status, status)
      t.equal(response.body, '')
      t.equal(response.headers['cache-control'], 'no-store')
    })
  })
}

t.test('/api/health/database with a real database', async (t) => {
  t.test('/api/health/database responds with 200 and the latency', async (t) => {
    const { url } = await startPostgres(t, { auth: 'scram-sha-256' })
    const { app } = startApp(t, { database: new DatabaseHealth(url, { timeoutMs: 60_000 }) })

    const response = await app.inject('/api/health/database')

    t.equal(response.statusCode, 200)
    t.match(response.json(), { status: 'up', latencyMs: Number })
  })

  t.test('failures of /api/health/database do not contain address or credentials', async (t) => {
    const { port } = await startPostgres(t, { auth: 'scram-sha-256' })
    const addresses = {
      'a login that is refused': `127.0.0.1:${port}`,
      'a port where nothing listens': `127.0.0.1:${await freePort()}`,
      'an unknown host': 'nonexistent.invalid'
    }
    const warnings: string[] = []
    const warned = (warning: Error): void => void warnings.push(String(warning.stack))
    process.on('warning', warned)
    t.teardown(() => process.off('warning', warned))

    for (const [title, address] of Object.entries(addresses)) {
      t.test(`the failure for ${title} contains neither address nor credentials`, async (t) => {
        const url = `postgres://hidden_user:hidden_password@${address}/hidden_name`
        const { app, logs } = startApp(t, { database: new DatabaseHealth(url, { timeoutMs: 60_000 }) })

        const response = await app.inject('/api/health/database')

        t.equal(response.statusCode, 503)
        t.match(logs.join(), '/api/health/database', 'there is a log')
        const shown = [JSON.stringify(response.headers), response.body, ...logs, ...warnings].join('\n')
        t.notMatch(shown, 'hidden')
        t.notMatch(shown, address)
      })
    }
  })
})

t.test('a gateway', async (t) => {
  t.test('a gateway is ready while its backend responds', async (t) => {
    const { send, backend } = await startGateway(t)

    const response = await send('/api/health/ready')

    t.equal(response.status, 200)
    t.match(JSON.parse(response.body), { status: 'ready', backend: { status: 'up', latencyMs: Number } })
    t.match(backend.requests, [{ method: 'GET', url: '/api/health' }])
  })

  t.test('the readiness check uses the path prefix of BACKEND_URL', async (t) => {
    const backend = await startBackend(t)
    const { send } = await startGateway(t, { env: { BACKEND_URL: `${backend.url}/v2/` } })

    await send('/api/health/ready')

    t.match(backend.requests, [{ url: '/v2/api/health' }])
  })

  t.test('a gateway without a backend is alive but not ready', async (t) => {
    const { send } = await startGateway(t, { env: { BACKEND_URL: `http://127.0.0.1:${await freePort()}` } })

    t.equal((await send('/api/health')).status, 200)
    const response = await send('/api/health/ready')
    t.equal(response.status, 503)
    t.same(JSON.parse(response.body), { status: 'unavailable', backend: { status: 'down', reason: 'refused' } })
  })

  t.test('a gateway is ready while all backend connections are in use', async (t) => {
    const backend = await startBackend(t)
    const taken = new Promise<void>((resolve) => {
      backend.respond = ({ url }, response) => {
        if (url === '/api/health') response.end()
        else resolve()
      }
    })
    const { url, send } = await startGateway(t, { backend, env: { BACKEND_CONNECTIONS: '1' } })
    browse(url, '/api/zones').end()
    await taken

    t.equal((await send('/api/health/ready')).status, 200)
  })

  t.test('the readiness check responds in time if the backend hangs', async (t) => {
    const backend = await startBackend(t)
    backend.respond = () => {}
    const { url, send } = await startGateway(t, { backend, env: { BACKEND_CONNECTIONS: '1' } })
    browse(url, '/api/zones').end()

    const response = await send('/api/health/ready')

    t.equal(response.status, 503)
    t.same(JSON.parse(response.body), { status: 'unavailable', backend: { status: 'down', reason: 'timeout' } })
  })

  t.test('/api/health/database reports that no database is configured', async (t) => {
    const { send } = await startGateway(t)

    const response = await send('/api/health/database')

    t.equal(response.status, 200)
    t.same(JSON.parse(response.body), { status: 'not configured' })
  })

  t.test('/api/health/database checks the configured database and not the backend', async (t) => {
    const address = `127.0.0.1:${await freePort()}`
    const DATABASE_URL = `postgres://hidden_user:hidden_password@${address}/hidden_name`
    const { send, backend, logs } = await startGateway(t, { env: { DATABASE_URL, LOG_LEVEL: 'trace' } })

    const response = await send('/api/health/database')

    t.equal(response.status, 503)
    t.same(JSON.parse(response.body), { status: 'down', reason: 'refused' })
    t.same(backend.requests, [])
    // The request line is written after the response.
    await eventually(() => logs.some(({ path }) => path === '/api/health/database'))
    t.notMatch(JSON.stringify(logs), /hidden/)
    t.notMatch(JSON.stringify(logs), address)
  })

  t.test('health routes need no token', async (t) => {
    const { send } = await startGateway(t)

    for (const path of ['/api/health', '/api/health/ready', '/api/health/database']) {
      t.equal((await send(path)).status, 200, path)
      t.equal((await send(path, { method: 'HEAD' })).status, 200, `${path} without a body`)
    }
  })
})
