import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { aptCommand } from './apt.js'
import { ROOT } from './root.js'
import { installPackages, type Machine, ServicesMissing } from './services.js'

/** Debian and Ubuntu ship `python3` without the modules of `python3 -m venv`. */
const VENV_PACKAGE = 'python3-venv'

/**
 * Resolves with the `bin` folder of a virtual environment in the project's cache that has these packages. The first call
 * creates it and needs a package index. Throws `ServicesMissing` with instructions.
 */
export const preparePythonEnvironment = async (
  name: string,
  requirements: readonly string[],
  machine: Machine,
  print: (line: string) => void
): Promise<string> => {
  // Changed requirements get a new folder.
  const hash = createHash('sha256').update(requirements.join('\n')).digest('hex').slice(0, 12)
  const venv = join(ROOT, 'node_modules/.cache', `${name}-${hash}`)
  const bin = join(venv, 'bin')
  const complete = join(venv, 'complete')
  if (existsSync(complete)) return bin

  rmSync(venv, { recursive: true, force: true })
  await createVenv(venv, machine, print)
  // Python compiles what is imported; compiling everything takes half of the CPU time of the installation.
  const install = ['-m', 'pip', 'install', '--quiet', '--no-compile', ...requirements]
  const installed = spawnSync(join(bin, 'python'), install, { env: machine.env, encoding: 'utf8' })
  if (installed.status !== 0) {
    throw new ServicesMissing(
      `${requirements[0]} could not be installed:\n${output(installed)}\nMake a package index reachable (pip reads PIP_INDEX_URL) and run again.`
    )
  }
  writeFileSync(complete, '')
  return bin
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
