/**
 * `npm start`: builds, then runs gateway, relay and demo backend as three processes, and says where the page is. Ctrl-C
 * stops all of them; when one of them ends, so do the others. `npm start -- --no-build` runs what was built before;
 * `npm start -- --oidc` adds an identity provider to sign in through.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { DEMO_ACCOUNTS } from '../demo/backend/auth/accounts.js'
import { takenPorts } from './demo/ports.js'
import { CannotStart, RunningProgram } from './demo/running-program.js'
import { type Stack, stackOf } from './demo/stack.js'
import { ROOT } from './root.js'

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const build = async (): Promise<void> => {
  say('Building …')
  const child = spawn('npm', ['run', '-s', 'build'], { cwd: ROOT, stdio: 'inherit' })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new CannotStart('The build failed.')
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
    // A terminal and npm may both pass the same Ctrl-C on.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve('stopped'))
  })
  const options = { oidc: args.includes('--oidc') }
  const taken = await takenPorts(stackOf(env, options).programs)
  if (taken.length > 0) throw new CannotStart(taken.join('\n'))
  if (!args.includes('--no-build') && (await Promise.race([build(), stopped])) === 'stopped') return 0

  // Only now: whether there is a page is known after the build.
  const stack = stackOf(env, options)
  const running = stack.programs.map((program) => new RunningProgram(program, env, say))
  const firstEnd = Promise.race(
    running.map(async ({ program, ended }) => `The ${program.name} ${await ended}, so the others stop too.`)
  )
  try {
    const ready = Promise.all(running.map((program) => program.ready())).then(() => 'ready' as const)
    if ((await Promise.race([ready, stopped])) === 'stopped') return 0
    say(block(stack))
    const end = await Promise.race([stopped, firstEnd])
    if (end === 'stopped') return 0
    throw new CannotStart(end)
  } finally {
    // Who is asked goes after who asks, so that nobody complains.
    for (const program of running.toReversed()) await program.stop()
  }
}

try {
  process.exitCode = await main(process.argv.slice(2), process.env)
} catch (error) {
  if (!(error instanceof Error)) throw error
  process.stderr.write(`${error instanceof CannotStart ? error.message : (error.stack ?? error.message)}\n`)
  process.exitCode = 1
}
