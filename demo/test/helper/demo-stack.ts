import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../../scripts/lib/root.js'
import type { Child, Teardown } from '../../../test/helper/child.js'
import { freePort, LOOPBACK } from '../../../test/helper/free-port.js'
import { type HttpResponse, send } from '../../../test/helper/http.js'
import { newDatabase } from '../../../test/helper/postgres.js'
import { startProgram } from '../../../test/helper/program.js'
import { type Program, type StackOptions, stackOf, writeRelayConfig } from '../../run/stack.js'

export const DEMO_PASSWORD = 'a-password-for-tests'

/**
 * The built gateway, relay and demo backend as `npm start` runs them, on free ports. Their database is PostgreSQL: the
 * embedded one takes ten CPU seconds to start.
 */
export interface DemoStack {
  /** The address of the page. */
  readonly url: string
  /** Kills a program. Resolves when it has ended. */
  kill(name: Program['name']): Promise<void>
  /** Sends a signal to a program, such as SIGSTOP to make it hang and SIGCONT to continue it. */
  signal(name: Program['name'], signal: NodeJS.Signals): void
  /** Resolves when a program has printed a line with this text. */
  printed(name: Program['name'], text: string): Promise<unknown>
  /** Starts a program again on the same port. */
  start(name: Program['name']): Promise<void>
  /** Calls the publish API of the relay. */
  api(method: string, request: unknown): Promise<HttpResponse>
}

/** In production an API key has 64 hex characters. */
const API_KEY = 'c0de'.repeat(16)

const READY = /listening|identity provider at/
const READY_WITHIN_MS = 300_000

export const startDemoStack = async (
  t: Teardown,
  env: Readonly<Record<string, string>> = {},
  options: Partial<StackOptions> = {}
): Promise<DemoStack> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-demo-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const ports = {
    GATEWAY_PORT: `${await freePort()}`,
    RELAY_PORT: `${await freePort()}`,
    DEMO_BACKEND_PORT: `${await freePort()}`,
    DEMO_OIDC_PORT: `${await freePort()}`
  }
  const databaseUrl = await newDatabase()
  const stack = stackOf(
    { ...ports, DEMO_PASSWORD, REALTIME_API_KEY: API_KEY },
    {
      root: ROOT,
      folder,
      // The programs say at the level info that they listen.
      verbose: true,
      ...options
    }
  )
  await writeRelayConfig(stack)
  const { programs, pageUrl, hasPage } = stack
  if (!hasPage) throw new Error('the page is not built: npm run build')

  const running = new Map<string, Child>()
  const start = async (name: Program['name']): Promise<void> => {
    const program = programs.find((one) => one.name === name)
    if (program === undefined) throw new Error(`the stack has no ${name}`)
    const child = await startProgram(t, program.entry, {
      ...program.env,
      ...(name === 'backend' && { DATABASE_URL: databaseUrl }),
      AUDIT_LOG_FILE: join(folder, 'audit.jsonl'),
      DEMO_BCRYPT_ROUNDS: '4',
      // Every browser context has its own client address, because of the login limit.
      TRUST_PROXY: 'loopback',
      ...env
    })
    running.set(name, child)
    await child.waitForLine(READY, READY_WITHIN_MS)
  }
  await Promise.all(programs.map(({ name }) => start(name)))
  return {
    url: pageUrl,
    start,
    printed: async (name, text) => running.get(name)?.waitForLine(text),
    signal: (name, signal) => running.get(name)?.signal(signal),
    kill: async (name) => {
      const child = running.get(name)
      child?.signal('SIGKILL')
      await child?.exited
    },
    api: (method, request) =>
      send(`http://${LOOPBACK}:${ports.RELAY_PORT}`, `/api/${method}`, {
        method: 'POST',
        body: JSON.stringify(request),
        headers: { 'x-api-key': API_KEY }
      })
  }
}
