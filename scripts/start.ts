/** `npm start`: builds, then runs the demo from the sources. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runDemo } from '../demo/run/demo.js'
import type { Progress } from '../demo/run/progress.js'
import { CommandError } from '../src/cli/command.js'
import { print, runCommand, UserError } from './lib/command.js'
import { ROOT } from './lib/root.js'

const USAGE = `Usage: npm start [-- [--no-build] [--oidc]]

  --no-build  run the existing build
  --oidc      also run an identity provider to sign in with`

/** The commands of `npm run build`, with names for the steps. */
const BUILD_STEPS: readonly (readonly [name: string, tool: string, ...args: string[]])[] = [
  // Two installed versions provide `tsc`, and the package manager links one of them.
  ['compile the programs', 'typescript-7/bin/tsc', '-p', 'tsconfig.build.json'],
  ['build the page', '.bin/vite', 'build', 'demo/web', '--logLevel', 'warn'],
  ["build the operators' page", '.bin/vite', 'build', 'src/relay-admin', '--logLevel', 'warn']
]

const build = async (progress: Progress, signal: AbortSignal): Promise<void> => {
  for (const [name, tool, ...args] of BUILD_STEPS)
    await progress.step(name, async () => {
      // Without npx, whose child would survive the signal.
      const command = [join(ROOT, 'node_modules', tool), ...args]
      const child = spawn(process.execPath, command, { cwd: ROOT, stdio: 'inherit', signal })
      const [code] = await once(child, 'close')
      if (code !== 0) throw new UserError(`The build failed: ${name}.`)
    })
}

await runCommand(USAGE, async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { oidc: { type: 'boolean', default: false }, 'no-build': { type: 'boolean', default: false } }
  })
  try {
    await runDemo({ env: process.env, print, root: ROOT, oidc: values.oidc, ...(!values['no-build'] && { build }) })
    return 0
  } catch (error) {
    throw error instanceof CommandError ? new UserError(error.message) : error
  }
})
