import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { stackOf } from '../../demo/run/stack.js'
import packageFile from '../../package.json' with { type: 'json' }
import { gatewaySettings } from '../../src/gateway/config.js'
import { relaySettings } from '../../src/relay/config/settings.js'
import { type Change, changed, shipped, shippedEnvironment } from './shipped.js'
import { runTool } from './tool.js'

const SETTINGS = { gateway: gatewaySettings, relay: relaySettings } as const
const PROGRAMS = ['gateway', 'relay'] as const
type Program = (typeof PROGRAMS)[number]

/** Every setting also exists as `<name>_FILE`. */
const isSetting = (program: Program, name: string): boolean =>
  name in SETTINGS[program] || name.replace(/_FILE$/, '') in SETTINGS[program]

/** The settings without which the programs do not start in production. */
const REQUIRED = {
  gateway: ['BACKEND_URL', 'API_SECRET'],
  relay: ['REALTIME_HMAC_SECRET', 'REALTIME_API_KEY']
} as const

const missingOf = (program: Program, names: readonly string[]): string[] =>
  REQUIRED[program].filter((name) => !names.includes(name) && !names.includes(`${name}_FILE`))

t.test('systemd units', async (t) => {
  /** The values of a key, in order. */
  const values = (unit: string, key: string): string[] =>
    [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value)

  for (const program of PROGRAMS) {
    t.test(`gatehouse-${program}@.service`, async (t) => {
      const name = `gatehouse-${program}@.service`
      const unit = shipped(`deploy/systemd/${name}`)

      t.test(`systemd accepts ${name}`, async (t) => {
        // Node.js may be installed elsewhere on this machine.
        const file = join(t.testdir(), name)
        const here: Change = ['ExecStart=/usr/bin/node ', `ExecStart=${process.execPath} `]
        writeFileSync(file, changed(unit, [here]))

        // The exit code is 0 even for unknown keys, which are only printed.
        t.equal(await runTool(t, 'systemd-analyze', ['verify', '--man=no', file]), '')
      })

      t.test(`${name} has the same command line as the image and both start scripts`, async (t) => {
        const script = packageFile.scripts[`start:${program}`]
        const [, image = ''] = /^ENTRYPOINT (.*)$/m.exec(shipped(`Dockerfile.${program}`)) ?? []

        t.same(values(unit, 'ExecStart'), [script.replace('exec node', '/usr/bin/node')])
        t.equal(JSON.parse(image).join(' '), script.replace('exec ', ''))
        const { nodeFlags = [], entry = '' } =
          stackOf({}, { root: '' }).programs.find(({ name }) => name === program) ?? {}
        t.equal(['node', ...nodeFlags, entry].join(' '), script.replace('exec ', ''), 'npm start')
      })

      t.test(`${name} has an exposure level below 1.5`, async (t) => {
        const file = join(t.testdir(), name)
        writeFileSync(file, unit)
        const args = ['security', '--offline=true', '--threshold=15', '--no-pager', file]

        t.match(await runTool(t, 'systemd-analyze', args), 'Overall exposure level')
      })

      t.test(`${name} sets all required settings and no unknown ones`, async (t) => {
        const inline = values(unit, 'Environment').map((text) => text.slice(0, text.indexOf('=')))
        const names = [...inline, ...Object.keys(shippedEnvironment(`deploy/systemd/${program}.env`))]

        const proposed = [...shipped(`deploy/systemd/${program}.env`).matchAll(/^# ([A-Z_]+)=/gm)].map(
          ([, setting = '']) => setting
        )

        t.same(
          [...names, ...proposed].filter((setting) => !isSetting(program, setting)),
          []
        )
        t.same(missingOf(program, names), [])
        t.same(values(unit, 'EnvironmentFile'), [`/etc/gatehouse/${program}.env`])
      })

      t.test(`${name} passes every loaded credential to the program`, async (t) => {
        const loaded = values(unit, 'LoadCredential').map((text) => `%d/${text.slice(0, text.indexOf(':'))}`)
        const used = values(unit, 'Environment').flatMap((text) => /=(%d.*)$/.exec(text)?.[1] ?? [])

        t.same(used, loaded)
      })
    })
  }
})

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  // The other fields depend on the kind.
  readonly [more: string]: unknown
}

t.test('Kubernetes', async (t) => {
  const documents = (name: string): Manifest[] =>
    parseAllDocuments(shipped(`deploy/kubernetes/${name}.yaml`)).map((document) => {
      // toJS ignores errors.
      if (document.errors.length > 0) throw document.errors[0]
      return document.toJS() as Manifest
    })

  for (const program of PROGRAMS) {
    t.test(`${program}.yaml`, async (t) => {
      const all = documents(program)
      const byKind = (kind: string): Manifest => {
        const found = all.filter((one) => one.kind === kind)
        if (found.length !== 1) throw new Error(`${found.length} documents of kind ${kind}`)
        return found[0] as Manifest
      }
      const labels = { 'app.kubernetes.io/name': 'gatehouse', 'app.kubernetes.io/component': program }
      const port = program === 'gateway' ? 3000 : 8100
      // biome-ignore lint/suspicious/noExplicitAny: the shape is what is tested
      const deployment = byKind('Deployment').spec as any
      const pod = deployment.template.spec
      const [container] = pod.containers

      t.test(`${program}.yaml contains one document of each kind with the same name`, async (t) => {
        t.same(
          all.map(({ kind }) => kind),
          ['ConfigMap', 'Deployment', 'Service', 'PodDisruptionBudget', 'HorizontalPodAutoscaler']
        )
        t.same([...new Set(all.map(({ metadata }) => metadata.name))], [`gatehouse-${program}`])
      })

      t.test(`the selectors in ${program}.yaml match the labels of the pods`, async (t) => {
        t.same(deployment.template.metadata.labels, labels)
        t.same(deployment.selector.matchLabels, labels)
        t.match(byKind('Service').spec, { selector: labels, ports: [{ port, targetPort: 'http' }] })
        t.match(byKind('PodDisruptionBudget').spec, { selector: { matchLabels: labels }, maxUnavailable: 1 })
        t.match(container.ports, [{ name: 'http', containerPort: port }])
      })

      t.test(`${program}.yaml sets all required settings and no unknown ones`, async (t) => {
        const names = [
          ...Object.keys(byKind('ConfigMap').data as object),
          ...container.env.map(({ name }: { name: string }) => name)
        ]
        t.same(
          names.filter((name) => !isSetting(program, name)),
          []
        )
        t.same(missingOf(program, names), [])
        t.match(container.envFrom, [{ configMapRef: { name: `gatehouse-${program}` } }])
      })

      t.test(`the probes in ${program}.yaml use existing endpoints`, async (t) => {
        const { livenessProbe, readinessProbe } = container
        if (program === 'gateway') t.equal(livenessProbe.httpGet.path, '/api/health')
        else t.same(livenessProbe.tcpSocket, { port: 'http' }, '/health is 503 while Redis is down')
        t.equal(readinessProbe.httpGet.path, program === 'gateway' ? '/api/health/ready' : '/health')
      })

      t.test(`the container of ${program}.yaml runs unprivileged on a read-only file system`, async (t) => {
        t.match(pod.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
        t.equal(pod.automountServiceAccountToken, false)
        t.same(container.securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] }
        })
      })

      t.test(`a roll-out of ${program}.yaml keeps all replicas available`, async (t) => {
        t.match(deployment.strategy.rollingUpdate, { maxUnavailable: 0, maxSurge: 1 })
        t.equal(deployment.replicas, undefined, 'the autoscaler sets the number of replicas')
        const preStopSeconds = Number(container.lifecycle.preStop.exec.command[1])
        t.ok(pod.terminationGracePeriodSeconds > preStopSeconds + 15, 'longer than the shutdown of the program')
      })
    })
  }

  t.test('the autoscaler scales the relay by its connections', async (t) => {
    const autoscaler = documents('relay').at(-1)
    t.match(autoscaler?.spec, {
      scaleTargetRef: { kind: 'Deployment', name: 'gatehouse-relay' },
      metrics: [{ type: 'Pods', pods: { metric: { name: 'centrifugo_node_num_clients' } } }]
    })
  })

  t.test('the relays in relay.yaml share a Redis', async (t) => {
    t.match(documents('relay')[0]?.data, { RELAY_ENGINE: 'redis' })
  })

  t.test('ingress.yaml routes to existing services', async (t) => {
    for (const { metadata, spec } of documents('ingress')) {
      const { rules } = spec as { rules: { http: { paths: { backend: unknown }[] } }[] }
      const backends = rules.flatMap(({ http }) => http.paths.map(({ backend }) => backend))
      for (const backend of backends) t.same(backend, { service: { name: metadata.name, port: { name: 'http' } } })
    }
  })
})
