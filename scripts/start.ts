/** `npm start`: builds, then runs the demo from the sources. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { runDemo } from '../demo/run/demo.js'
import { CommandError } from '../src/cli/command.js'
import { print, runCommand, UserError } from './lib/command.js'
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
