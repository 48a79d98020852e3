/**
 * `npm start`: builds, then runs gateway, relay and demo backend as child processes and prints the address of the page.
 * Ctrl-C stops all of them. When one of them ends, the others are stopped too.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { DEMO_ACCOUNTS } from '../demo/backend/auth/accounts.js'
import { print, runCommand, UserError } from './lib/command.js'
import { unavailablePorts } from './lib/demo/ports.js'
import { RunningProgram } from './lib/demo/running-program.js'
import { type Stack, stackOf } from './lib/demo/stack.js'
import { ROOT } from './lib/root.js'

const USAGE = `Usage: npm start [-- [--no-build] [--oidc]]

  --no-build  run the existing build
  --oidc      also run an identity provider to sign in with`

const build = async (): Promise<void> => {
  print('Building …')
  const child = spawn('npm', ['run', '-s', 'build'], { cwd: ROOT, stdio: 'inherit' })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new UserError('The build failed.')
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

const main = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> => {
  const stopped = new Promise<'stopped'>((resolve) => {
    // The terminal and npm may both send the signal of one Ctrl-C.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('stopped'))
  })
  const { values } = parseArgs({
    args: [...args],
    options: { oidc: { type: 'boolean', default: false }, 'no-build': { type: 'boolean', default: false } }
  })
  const unavailable = await unavailablePorts(stackOf(env, values).programs)
  if (unavailable.length > 0) throw new UserError(unavailable.join('\n'))
  if (!values['no-build'] && (await Promise.race([build(), stopped])) === 'stopped') return 0

  // After the build, because the stack depends on whether the page exists.
  const stack = stackOf(env, values)
  const running = stack.programs.map((program) => new RunningProgram(program, env, print))
  const firstEnd = Promise.race(
    running.map(async ({ program, ended }) => `The ${program.name} ${await ended}, so the others stop too.`)
  )
  try {
    const ready = Promise.all(running.map((program) => program.ready())).then(() => 'ready' as const)
    if ((await Promise.race([ready, stopped])) === 'stopped') return 0
    print(block(stack))
    const end = await Promise.race([stopped, firstEnd])
    if (end === 'stopped') return 0
    throw new UserError(end)
  } finally {
    // Each program stops before the programs that it depends on.
    for (const program of running.toReversed()) await program.stop()
  }
}

await runCommand(USAGE, (args) => main(args, process.env))
