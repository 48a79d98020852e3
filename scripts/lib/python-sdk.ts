import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { preparePythonEnvironment } from './python-environment.js'
import { ROOT } from './root.js'
import type { Machine } from './services.js'

/** The newest version, and the last one that sends an empty `Sec-WebSocket-Protocol` header. */
export const PYTHON_SDK_VERSIONS = ['0.7.0', '0.6.0'] as const

/** Pinned versions of the SDK's dependencies. */
const REQUIREMENTS = join(ROOT, 'test/all/sdk/python/requirements.txt')

/** Resolves with a Python interpreter that has this version of the official Python SDK. */
export const preparePythonSdk = async (
  version: string,
  machine: Machine,
  print: (line: string) => void
): Promise<string> => {
  const dependencies = readFileSync(REQUIREMENTS, 'utf8').trim().split('\n')
  const requirements = [`centrifuge-python==${version}`, ...dependencies]
  return join(await preparePythonEnvironment(`python-sdk-${version}`, requirements, machine, print), 'python')
}
