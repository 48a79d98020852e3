import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { aptCommand } from './apt.js'
import { ROOT } from './root.js'
import { installPackages, type Machine, ServicesMissing } from './services.js'

/** The newest version, and the last one that sends an empty `Sec-WebSocket-Protocol` header. */
export const PYTHON_SDK_VERSIONS = ['0.7.0', '0.6.0'] as const

/** Pinned versions of the SDK's dependencies. */
const REQUIREMENTS = join(ROOT, 'test/relay/python/requirements.txt')
/** Debian and Ubuntu ship `python3` without the modules of `python3 -m venv`. */
const VENV_PACKAGE = 'python3-venv'

/** Changed requirements get a new folder. */
const folder = (version: string): string => {
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12)
  return join(ROOT, 'node_modules/.cache', `python-sdk-${version}-${hash}`)
}

/**
 * Resolves with a Python interpreter that has this version of the official Python SDK, in a virtual environment. The first
 * call creates it and needs a package index. Throws `ServicesMissing` with instructions.
 */
export const preparePythonSdk = async (
  version: string,
  machine: Machine,
  print: (line: string) => void
): Promise<string> => {
  const venv = folder(version)
  const python = join(venv, 'bin/python')
  const complete = join(venv, 'complete')
  if (existsSync(complete)) return python

  rmSync(venv, { recursive: true, force: true })
  await createVenv(venv, machine, print)
  const install = ['-m', 'pip', 'install', '--quiet', `centrifuge-python==${version}`, '--requirement', REQUIREMENTS]
  const installed = spawnSync(python, install, { env: machine.env, encoding: 'utf8' })
  if (installed.status !== 0) {
    throw new ServicesMissing(
      `The official Python SDK could not be installed:\n${output(installed)}\nMake a package index reachable (pip reads PIP_INDEX_URL) and run again.`
    )
  }
  writeFileSync(complete, '')
  return python
}

const createVenv = async (venv: string, machine: Machine, print: (line: string) => void): Promise<void> => {
  const create = () => spawnSync('python3', ['-m', 'venv', venv], { env: machine.env, encoding: 'utf8' })
  let created = create()
  if (created.status !== 0 && machine.canInstall()) {
    await installPackages([VENV_PACKAGE], machine, print)
    created = create()
  }
  if (created.status === 0) return
  const found = machine.find('python3') ?? 'no python3 on the PATH'
  throw new ServicesMissing(
    `No Python environment could be created (${found}):\n${output(created)}\nOn Debian or Ubuntu this command installs it:\n    ${aptCommand([VENV_PACKAGE], 'sudo ')}`
  )
}

const output = ({ error, stdout, stderr }: ReturnType<typeof spawnSync>): string =>
  error?.message ?? `${stdout}${stderr}`.trim()
