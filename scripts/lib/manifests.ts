import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { UserError } from './command.js'
import { ROOT } from './root.js'

export const CHART = join(ROOT, 'deploy/helm')

/** Files of the chart that are copies, because Helm reads only files of the chart. */
export const CHART_COPIES: Readonly<Record<string, string>> = {
  'files/gatehouse-alerts.yml': 'deploy/prometheus/gatehouse-alerts.yml',
  'files/gateway.json': 'deploy/grafana/gateway.json',
  'files/relay.json': 'deploy/grafana/relay.json'
}

export const MANIFESTS = join(ROOT, 'deploy/kubernetes')

/** The values with which `deploy/kubernetes` is rendered. */
const VALUES = join(MANIFESTS, 'values.yaml')

const HEADER = '# Rendered from deploy/helm with values.yaml of this folder by `npm run manifests`.'

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

/** The files of `deploy/kubernetes`. */
export const manifests = (helm: string): Map<string, string> =>
  new Map([...renderChart(helm, ['--values', VALUES])].map(([name, text]) => [name, `${HEADER}\n${text}`]))
