import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { programOnPath } from './program-on-path.js'

const UPDATE = ['update']
const INSTALL = ['install', '-y', '--no-install-recommends']

/** The line a person would type; the messages and the run itself use the same words. */
export const aptLine = (packages: readonly string[], prefix = ''): string =>
  [UPDATE, [...INSTALL, ...packages]].map((args) => `${prefix}apt-get ${args.join(' ')}`).join(' && ')

/** Installing is tried only where it needs no password and no guess: root, on a Debian-family machine. */
export const mayInstallWithApt = (env: NodeJS.ProcessEnv): boolean =>
  process.getuid?.() === 0 && existsSync('/etc/debian_version') && programOnPath('apt-get', env.PATH) !== undefined

/** Throws with what apt-get said; its output is kept back as long as all goes well. */
export const installWithApt = (packages: readonly string[], env: NodeJS.ProcessEnv): void => {
  // Only the program is wanted, not the system service that Debian starts with it. In runlevel 1 init scripts are not
  // started on install; it is a hint for this one call, while a policy-rc.d file would stay behind on the machine.
  const quietly = { ...env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const aptGet = (args: readonly string[]) => spawnSync('apt-get', args, { env: quietly, encoding: 'utf8' })

  // one package source that cannot be reached fails the update, and need not fail the installation
  const update = aptGet(UPDATE)
  const install = aptGet([...INSTALL, ...packages])
  if (install.error) throw install.error
  if (install.status !== 0) throw new Error(`apt-get failed:\n${update.stderr}${install.stdout}${install.stderr}`)
}
