import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { aptLine, installWithApt, mayInstallWithApt } from './apt.js'
import { programOnPath } from './program-on-path.js'
import { ROOT } from './root.js'
import { ServicesMissing } from './services.js'

/** The newest version, and the last one that sends an empty `Sec-WebSocket-Protocol` header. */
export const PYTHON_SDK_VERSIONS = ['0.7.0', '0.6.0'] as const

/** The versions of what the SDK itself needs. */
const REQUIREMENTS = join(ROOT, 'test/relay/python/requirements.txt')
/** Debian and Ubuntu ship `python3` without what `python3 -m venv` needs. */
const VENV_PACKAGE = 'python3-venv'

/** A change of the requirements has a new folder. */
const folder = (version: string): string => {
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  return join(ROOT, 'node_modules/.cache', `python-sdk-${version}-${hash}`)
}

/**
 * A Python interpreter that has this version of the official Python SDK, in a virtual environment of our own. The first call makes it and
 * needs a package index; later calls find it. Throws `ServicesMissing` with what has to be done.
 */
export const preparePythonSdk = (version: string, env: NodeJS.ProcessEnv): string => {
  const venv = folder(version)
  const python = join(venv, 'bin/python')
  const isComplete = join(venv, 'complete')
  if (existsSync(isComplete)) return python

  rmSync(venv, { recursive: true, force: true })
  makeVenv(venv, env)
  const install = ['-m', 'pip', 'install', '--quiet', `centrifuge-python==${version}`, '--requirement', REQUIREMENTS]
  const installed = spawnSync(python, install, { env, encoding: 'utf8' })
  if (installed.status !== 0) {
    throw new ServicesMissing(
      `The official Python SDK could not be installed:\n${output(installed)}\nMake a package index reachable (pip reads PIP_INDEX_URL) and run again.`
    )
  }
  writeFileSync(isComplete, '')
  return python
}

const makeVenv = (venv: string, env: NodeJS.ProcessEnv): void => {
  const make = () => spawnSync('python3', ['-m', 'venv', venv], { env, encoding: 'utf8' })
  let made = make()
  if (made.status !== 0 && mayInstallWithApt(env)) {
    installWithApt([VENV_PACKAGE], env)
    made = make()
  }
  if (made.status === 0) return
  const found = programOnPath('python3', env.PATH) ?? 'no python3 on the PATH'
  throw new ServicesMissing(
    `No Python environment could be made (${found}):\n${output(made)}\nOn Debian or Ubuntu this line installs what it needs:\n    ${aptLine([VENV_PACKAGE], 'sudo ')}`
  )
}

const output = ({ error, stdout, stderr }: ReturnType<typeof spawnSync>): string =>
  error?.message ?? `${stdout}${stderr}`.trim()
