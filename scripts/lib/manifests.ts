import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { UserError } from './command.js'
import { ROOT } from './root.js'

export const CHART = join(ROOT, 'deploy/helm')

/** The values of the plain manifests. `kubectl rollout restart` takes the place of a checksum of the settings. */
const VALUES = [
  'restartOnChange=false',
  'gateway.settings.BACKEND_URL=http://backend:4000',
  'gatewayApi.enabled=true',
  'gatewayApi.className=example',
  'monitoring.enabled=true'
].join()

const HEADER = '# Rendered from deploy/helm by `npm run manifests`.'

/** The oldest supported version; without a cluster Helm assumes one that depends on how it was built. */
const KUBERNETES = '1.25'

/** Renders the chart into one text per template, by file name. Throws `UserError` with Helm's message. */
export const renderChart = (helm: string, args: readonly string[] = []): Map<string, string> => {
  const { status, stdout, stderr } = spawnSync(
    helm,
    ['template', 'gatehouse', CHART, '--kube-version', KUBERNETES, ...args],
    { encoding: 'utf8' }
  )
  if (status !== 0) throw new UserError(stderr.trim())
  const files = new Map<string, string>()
  for (const document of stdout.split(/^---\n/m)) {
    const [, name = '', text = ''] = /^# Source: gatehouse\/templates\/(.*)\n([\s\S]*)$/.exec(document) ?? []
    if (name !== '') files.set(name, [...(files.has(name) ? [files.get(name), '---\n'] : []), text].join(''))
  }
  return files
}

/** The plain manifests, by file name. */
export const manifests = (helm: string): Map<string, string> =>
  new Map([...renderChart(helm, ['--set', VALUES])].map(([name, text]) => [name, `${HEADER}\n${text}`]))
