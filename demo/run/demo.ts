import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandError } from '../../src/cli/command.js'
import { unavailablePorts } from '../../src/cli/dev/ports.js'
import { runTogether, stopSignal } from '../../src/cli/dev/run-together.js'
import { DEMO_ACCOUNTS } from '../backend/auth/accounts.js'
import { commandOf, type Stack, type StackOptions, stackOf, writeRelayConfig } from './stack.js'

export interface DemoOptions extends Omit<StackOptions, 'folder'> {
  readonly env: NodeJS.ProcessEnv
  readonly print: (line: string) => void
  /** Called when the ports are known to be free, and before the programs start. */
  readonly build?: () => Promise<void>
}

/**
 * Runs gateway, relay and demo backend as child processes and prints the address of the page, until a signal or the end of
 * one of them, which stops the others too. Throws `CommandError`.
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
  const stopped = stopSignal()
  const unavailable = await unavailablePorts(stackOf(env, options).programs)
  if (unavailable.length > 0) throw new CommandError(unavailable)
  if (build !== undefined && (await Promise.race([build(), stopped])) === 'stopped') return

  // After the build, because the stack depends on whether the page exists.
  const stack = stackOf(env, options)
  await writeRelayConfig(stack)
  await runTogether([stack.programs.map((program) => commandOf(program, env))], {
    print,
    stopped,
    onReady: () => print(block(stack))
  })
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
