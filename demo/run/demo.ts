import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DEMO_ACCOUNTS } from '../backend/auth/accounts.js'
import { unavailablePorts } from './ports.js'
import { DemoError, RunningProgram } from './running-program.js'
import { type Stack, type StackOptions, stackOf, writeRelayConfig } from './stack.js'

export interface DemoOptions extends Omit<StackOptions, 'folder'> {
  readonly env: NodeJS.ProcessEnv
  readonly print: (line: string) => void
  /** Called when the ports are known to be free, and before the programs start. */
  readonly build?: () => Promise<void>
}

/**
 * Runs gateway, relay and demo backend as child processes and prints the address of the page, until a signal or the end of
 * one of them, which stops the others too. Throws `DemoError`.
 */
export const runDemo = async (options: DemoOptions): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  try {
    await runIn(folder, options)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const runIn = async (folder: string, { env, print, build, ...rest }: DemoOptions): Promise<void> => {
  const options: StackOptions = { ...rest, folder }
  const stopped = new Promise<'stopped'>((resolve) => {
    // The terminal and npm may both send the signal of one Ctrl-C.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('stopped'))
  })
  const unavailable = await unavailablePorts(stackOf(env, options).programs)
  if (unavailable.length > 0) throw new DemoError(unavailable.join('\n'))
  if (build !== undefined && (await Promise.race([build(), stopped])) === 'stopped') return

  // After the build, because the stack depends on whether the page exists.
  const stack = stackOf(env, options)
  await writeRelayConfig(stack)
  const running = stack.programs.map((program) => new RunningProgram(program, env, print))
  const firstEnd = Promise.race(
    running.map(async ({ program, ended }) => `The ${program.name} ${await ended}, so the others stop too.`)
  )
  try {
    const ready = Promise.all(running.map((program) => program.ready())).then(() => 'ready' as const)
    if ((await Promise.race([ready, stopped])) === 'stopped') return
    print(block(stack))
    const end = await Promise.race([stopped, firstEnd])
    if (end !== 'stopped') throw new DemoError(end)
  } finally {
    // Each program stops before the programs that it depends on.
    for (const program of running.toReversed()) await program.stop()
  }
}

const block = ({ pageUrl, adminUrl, adminPassword, demoPassword, hasPage, hasProvider }: Stack): string =>
  [
    '',
    '  Gatehouse is running.',
    '',
    `  Page      ${pageUrl}${hasPage ? '' : '  (no page is built here; the API is under /api)'}`,
    `  Accounts  ${DEMO_ACCOUNTS.map(({ email }) => email).join(', ')}`,
    `  Password  ${demoPassword}`,
    ...(hasProvider ? [`  Provider  ${pageUrl}/auth/oidc/login  (choose an account there, no password)`] : []),
    `  Relay     ${adminUrl}  password ${adminPassword}`,
    '  Stop      Ctrl-C',
    ''
  ].join('\n')
