/** `npm start`: builds, then runs the demo from the sources. */
import { parseArgs } from 'node:util'
import { runDemo } from '../demo/run/demo.js'
import { CommandError } from '../src/cli/command.js'
import { startBuild } from './lib/build.js'
import { print, runCommand, UserError } from './lib/command.js'
import { ROOT } from './lib/root.js'

const USAGE = `Usage: npm start [-- [--no-build] [--oidc] [--verbose]]

  --no-build  run the existing build
  --oidc      also run an identity provider to sign in with
  --verbose   print each request`

await runCommand(USAGE, async (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      oidc: { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
      verbose: { type: 'boolean', default: false }
    }
  })
  const { oidc, verbose } = values
  try {
    await runDemo({
      env: process.env,
      print,
      root: ROOT,
      oidc,
      verbose,
      ...(!values['no-build'] && {
        build: (progress, signal) => startBuild({ run: (title, work) => progress.step(title, work), signal })
      })
    })
    return 0
  } catch (error) {
    throw error instanceof CommandError ? new UserError(error.message) : error
  }
})
