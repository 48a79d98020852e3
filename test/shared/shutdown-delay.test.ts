import { Agent } from 'node:http'
import t, { type Test } from 'tap'
import type { Child } from '../helper/child.js'
import { eventually } from '../helper/eventually.js'
import { API_SECRET, browserHeaders } from '../helper/gateway.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { startBackend } from '../helper/recording-backend.js'

const SECRET = '0123456789abcdef'.repeat(4)
/** Longer than the test. */
const LONG_DELAY_MS = '300000'

interface Running {
  readonly program: Child
  readonly url: string
}

const run = async (t: Test, entry: string, env: Readonly<Record<string, string>>): Promise<Running> => {
  const program = await startProgram(t, entry, { NODE_ENV: 'production', ...env })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  return { program, url }
}

interface Program {
  readonly start: (t: Test, delayMs: string) => Promise<Running>
  readonly healthPaths: readonly string[]
  /** A request that is served. */
  readonly request: readonly [path: string, headers: Readonly<Record<string, string>>, body: string]
}

const relay = (workers: string): Program => ({
  start: (t, delayMs) =>
    run(t, 'dist/src/relay/main.js', {
      RELAY_PORT: '0',
      RELAY_WORKERS: workers,
      REALTIME_HMAC_SECRET: SECRET,
      REALTIME_API_KEY: SECRET,
      RELAY_WARM_UP: 'false',
      SHUTDOWN_DELAY_MS: delayMs
    }),
  healthPaths: ['/health'],
  request: ['/api/info', { 'x-api-key': SECRET }, '{}']
})

const PROGRAMS: Readonly<Record<string, Program>> = {
  gateway: {
    start: async (t, delayMs) =>
      run(t, 'dist/src/gateway/main.js', {
        GATEWAY_PORT: '0',
        BACKEND_URL: (await startBackend(t)).url,
        API_SECRET,
        AUDIT_LOG_FILE: '/dev/null',
        SHUTDOWN_DELAY_MS: delayMs
      }),
    healthPaths: ['/api/health', '/api/health/ready'],
    request: ['/api/emergency/trigger', browserHeaders(), '{"type":"fire"}']
  },
  relay: relay('1'),
  'relay with workers': relay('2')
}

for (const [name, { start, healthPaths, request }] of Object.entries(PROGRAMS)) {
  t.test(`a ${name} with a shutdown delay fails its health checks and serves requests after SIGTERM`, async (t) => {
    const { program, url } = await start(t, LONG_DELAY_MS)
    const agent = new Agent({ keepAlive: true })
    t.teardown(() => agent.destroy())
    const [path, headers, body] = request
    const message = { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } }
    for (const path of healthPaths) t.equal((await send(url, path)).status, 200, `${path} before the signal`)
    t.equal((await send(url, path, { ...message, agent })).headers.connection, 'keep-alive')

    program.signal('SIGTERM')
    for (const path of healthPaths)
      await eventually(async () => (await send(url, path)).status === 503, { label: `503 from ${path}` })

    // The worker of this connection may be notified after the one that has responded to the health check.
    const isClosing = async (): Promise<boolean> => {
      const response = await send(url, path, { ...message, agent })
      t.equal(response.status, 200)
      return response.headers.connection === 'close'
    }
    await eventually(isClosing, { label: 'a proxy must not reuse the connection' })
    t.equal((await send(url, path, message)).status, 200, 'new connections are accepted')
    // Log lines are written with a delay.
    t.ok(await program.waitForLine(`"delayMs":${LONG_DELAY_MS}`))
  })
}

// The other programs close by `closeOnSignal` alone, see shutdown.test.ts.
t.test('a relay with workers exits with 0 after its shutdown delay', async (t) => {
  const { program } = await relay('2').start(t, '100')
  program.signal('SIGTERM')
  t.same(await program.exited, { code: 0, signal: null })
  t.match(program.stdout, '"stopped"')
})
