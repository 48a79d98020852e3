import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Program, type StackOptions, stackOf } from '../../demo/run/stack.js'
import { ROOT } from '../../scripts/lib/root.js'
import type { Child, Teardown } from './child.js'
import { freePort } from './free-port.js'
import { startProgram } from './program.js'

export const DEMO_PASSWORD = 'a-password-for-tests'

/** The built gateway, relay and demo backend as `npm start` runs them, on free ports. */
export interface DemoStack {
  /** The address of the page. */
  readonly url: string
  /** Kills the program. Resolves when it has ended. */
  killRelay(): Promise<void>
  /** Starts the program again on the same port. */
  startRelay(): Promise<void>
}

const READY = /listening|identity provider at/
const READY_WITHIN_MS = 60_000

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
  const { programs, pageUrl, hasPage } = stackOf({ ...ports, DEMO_PASSWORD }, { root: ROOT, ...options })
  if (!hasPage) throw new Error('the page is not built: npm run build')

  const start = async ({ entry, env: own }: Program): Promise<Child> => {
    const child = await startProgram(t, entry, {
      ...own,
      AUDIT_LOG_FILE: join(folder, 'audit.jsonl'),
      // Every browser context has its own client address, because of the login limit.
      TRUST_PROXY: 'loopback',
      ...env
    })
    await child.waitForLine(READY, READY_WITHIN_MS)
    return child
  }
  const relay = programs.find(({ name }) => name === 'relay') as Program
  const others = programs.filter((program) => program !== relay)

  let running: Child
  const startRelay = async (): Promise<void> => {
    running = await start(relay)
  }
  await Promise.all([startRelay(), ...others.map(start)])
  return {
    url: pageUrl,
    startRelay,
    killRelay: async () => {
      running.signal('SIGKILL')
      await running.exited
    }
  }
}
