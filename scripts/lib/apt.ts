import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { programOnPath } from './program-on-path.js'

const UPDATE = ['update']
const INSTALL = ['install', '-y', '--no-install-recommends']

/** The shell command that installs the packages; messages and the installation use the same arguments. */
export const aptCommand = (packages: readonly string[], prefix = ''): string =>
  [UPDATE, [...INSTALL, ...packages]].map((args) => `${prefix}apt-get ${args.join(' ')}`).join(' && ')

/** Only as root on a Debian-family machine, where the installation needs no password. */
export const canInstallWithApt = (env: NodeJS.ProcessEnv): boolean =>
  process.getuid?.() === 0 && existsSync('/etc/debian_version') && programOnPath('apt-get', env.PATH) !== undefined

/** Throws with the output of apt-get, which is not printed otherwise. */
export const installWithApt = (packages: readonly string[], env: NodeJS.ProcessEnv): void => {
  // Debian would start a system service with the program. In runlevel 1 init scripts are not started on install; the
  // variable applies to this call only, while a policy-rc.d file would stay on the machine.
  const aptEnv = { ...env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const aptGet = (args: readonly string[]) => spawnSync('apt-get', args, { env: aptEnv, encoding: 'utf8' })

  // An unreachable package source fails the update, but not necessarily the installation.
  const update = aptGet(UPDATE)
  const install = aptGet([...INSTALL, ...packages])
  if (install.error) throw install.error
  if (install.status !== 0) throw new Error(`apt-get failed:\n${update.stderr}${install.stdout}${install.stderr}`)
}
