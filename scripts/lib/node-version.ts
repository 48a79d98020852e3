import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError, UserError } from './command.js'
import { ROOT } from './root.js'

/** Major versions of Node.js that can be installed. 26 is not supported yet; it is here to try the tests and benchmarks on it. */
const INSTALLABLE = ['20', '22', '24', '26']

/**
 * Installs the newest release of a major version of Node.js into the project's cache folder, through the npm package
 * `node`, and resolves with the folder of its executable. Later calls find it there.
 */
export const installNode = (major: string, env: NodeJS.ProcessEnv, print: (line: string) => void): string => {
  if (!INSTALLABLE.includes(major))
    throw new UsageError(`--node must be one of ${INSTALLABLE.join(', ')}, not ${major}`)
  const folder = join(ROOT, 'node_modules/.cache', `node-${major}`)
  const bin = join(folder, 'node_modules/node/bin')
  const complete = join(folder, 'complete')
  if (!existsSync(complete)) {
    const args = ['install', '--no-save', '--no-audit', '--no-fund', `--prefix=${folder}`, `node@${major}`]
    print(`Node.js ${major} is not in the project's cache yet. Installing it: npm ${args.join(' ')}`)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    // npm would otherwise look for the next package.json above, which is the project's.
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
    const { status, stdout, stderr } = spawnSync('npm', args, { cwd: folder, env, encoding: 'utf8' })
    if (status !== 0) throw new UserError(`Node.js ${major} could not be installed:\n${stdout}${stderr}`)
    writeFileSync(complete, '')
  }
  const { stdout, error } = spawnSync(join(bin, 'node'), ['--version'], { encoding: 'utf8' })
  if (error || !stdout.startsWith(`v${major}.`))
    throw new UserError(`${bin}/node does not run: ${error?.message ?? stdout}. Remove ${folder} and run again.`)
  print(`Node.js: ${stdout.trim()} in ${bin}`)
  return bin
}
