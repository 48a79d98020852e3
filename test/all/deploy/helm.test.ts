import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import packageFile from '../../../package.json' with { type: 'json' }
import { prepareCrds, prepareKubernetesSchemas } from '../../../scripts/lib/kubernetes-tools.js'
import { CHART, manifests, renderChart } from '../../../scripts/lib/manifests.js'
import { checkGatewayFiles } from '../../../src/gateway/check-files.js'
import { gatewayConfig } from '../../../src/gateway/config.js'
import { readRoutesFile } from '../../../src/gateway/custom-routes/custom-routes.js'
import { required } from '../../helper/required.js'
import { helmProgram, machine, NEEDS_HELM, plainManifests, silent } from './helm-chart.js'
import { crdValidator, labelsOf, type Manifest, manifestOf, manifestsOf } from './kubernetes-manifests.js'
import { PROGRAMS } from './program-settings.js'
import { shipped } from './shipped.js'

const FILES = [
  'gateway-api.yaml',
  'gateway.yaml',
  'ingress.yaml',
  'monitoring.yaml',
  'network-policies.yaml',
  'relay.yaml'
]
const DOCUMENT = { openapi: '3.1.0', info: { title: 'Carts', version: '1.0.0' }, paths: {} }

const ADDITIONS = {
  podAnnotations: { 'example.com/owner': 'platform' },
  extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/ca/ca.pem' }],
  extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
  extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca', readOnly: true }],
  extraContainers: [{ name: 'sidecar', image: 'registry.example.com/sidecar:1.0.0' }]
}

const WITH_FILES = {
  upstreams: [{ name: 'shop', url: 'http://shop:4100', paths: ['/shop'], routes: 'shop.yaml', timeout_ms: 500_000 }],
  documents: { 'shop.yaml': JSON.stringify({ ...DOCUMENT, paths: { '/items': { get: {} } } }) },
  limits: [{ name: 'all', paths: ['/'], by: 'both', rate: 1_000_000 }],
  providers: [
    {
      id: 'partner',
      issuer: 'https://login.partner.example:8443',
      client_id: 'gatehouse',
      client_secret_file: '/run/secrets/gatehouse/partner_secret'
    }
  ],
  internalApi: { enabled: true, informRelay: true }
}

t.test('Helm', NEEDS_HELM, async (t) => {
  const helm = await helmProgram()
  const REQUIRED = ['--set', 'gateway.settings.BACKEND_URL=http://backend:4000']
  const render = (...args: readonly string[]): Manifest[] =>
    [...renderChart(helm, [...REQUIRED, ...args]).values()].flatMap(manifestsOf)
  const settingsOf = (all: readonly Manifest[], program: string): Readonly<Record<string, string>> =>
    manifestOf(all, 'ConfigMap', `gatehouse-${program}`).data ?? {}

  t.test('helm lint reports nothing about the chart', async (t) => {
    const { status, stdout } = spawnSync(helm, ['lint', '--strict', CHART, ...REQUIRED], { encoding: 'utf8' })
    t.equal(status, 0, stdout)
    t.notMatch(stdout, /\[(?:WARNING|ERROR)\]/)
  })

  t.test('the plain manifests are one file of each template', async (t) => {
    t.same([...manifests(helm).keys()].toSorted(), FILES)
  })

  t.test('the chart has the version of the project', async (t) => {
    const { version, appVersion } = parse(shipped('deploy/helm/Chart.yaml'))
    t.same({ version, appVersion }, { version: packageFile.version, appVersion: packageFile.version })
    const { image } = manifestOf(render(), 'Deployment', 'gatehouse-relay').spec.template.spec.containers[0]
    t.equal(image, `gatehouse-relay:${packageFile.version}`)
  })

  t.test('wrong values of the chart are rejected by name', async (t) => {
    const message = (args: readonly string[]): string => {
      try {
        renderChart(helm, args)
        return 'rendered'
      } catch (error) {
        return String(error)
      }
    }
    t.match(message([]), 'gateway.settings.BACKEND_URL is required')
    t.match(message([...REQUIRED, '--set', 'gatway.secretName=x']), 'gatway')
    t.match(message([...REQUIRED, '--set', 'relay.autoscaling.maxReplicas=many']), 'maxReplicas')
    t.match(
      message([...REQUIRED, '--set', 'gateway.oidc.issuer=https://login.example.com']),
      'gateway.oidc.clientId is required'
    )
    t.match(message([...REQUIRED, '--set', 'gatewayApi.enabled=true']), 'gatewayApi.className is required')
    t.match(message([...REQUIRED, '--set', 'relay.extraVolumeMounts[0].name=a']), 'mountPath')
    const routes = 'gateway.routes=openapi: 3.1.0,gateway.settings.GATEWAY_ROUTES=/routes.js'
    t.match(message([...REQUIRED, '--set', routes]), 'must not both be set')
    const limits = ['--set-json', 'gateway.limits=[{"name":"a","paths":["/"],"by":"user","rate":1}]']
    t.match(message([...REQUIRED, ...limits, '--set', 'gateway.settings.GATEWAY_LIMITS=/x']), 'GATEWAY_LIMITS must not')
    t.match(message([...REQUIRED, '--set-json', 'gateway.upstreams=[{"name":"a"}]']), 'url')
    t.match(message([...REQUIRED, '--set', 'gateway.documents.limits\\.yaml=x']), 'limits.yaml')
    t.match(message([...REQUIRED, '--set', 'gateway.internalApi.informRelay=true']), 'internalApi.enabled')
  })

  t.test('rows, limits, identity providers and the internal API of the gateway', async (t) => {
    const all = render('--set-json', `gateway=${JSON.stringify(WITH_FILES)}`)
    const { data = {} } = manifestOf(all, 'ConfigMap', 'gatehouse-gateway-files')
    const pod = manifestOf(all, 'Deployment', 'gatehouse-gateway').spec.template.spec
    const [container] = pod.containers
    const { mountPath } = required(container.volumeMounts.find(({ name }: { name: string }) => name === 'files'))

    t.test('the gateway accepts the rendered files and settings', async (t) => {
      const secret = join(t.testdir({ secret: 'x' }), 'secret')
      const folder = t.testdirName
      for (const [name, text] of Object.entries(data))
        writeFileSync(join(folder, name), text.replaceAll('/run/secrets/gatehouse/partner_secret', secret))
      const settings = Object.entries(settingsOf(all, 'gateway')).map(([name, value]) =>
        name.endsWith('_FILE')
          ? [name.slice(0, -'_FILE'.length), `a-long-secret-from-the-file-${value}`]
          : [name, value.replace(mountPath, folder)]
      )
      const env = { NODE_ENV: 'production', ...Object.fromEntries(settings), REDIS_URL: 'redis://redis:6379' }
      const config = gatewayConfig(env)
      t.match(config.upstreams, [{ name: 'shop', routes: join(folder, 'shop.yaml'), timeout_ms: 500_000 }])
      t.match(config.requestLimits, [{ name: 'all', burst: 1_000_000 }])
      t.match(config.oidc?.providers, [{ id: 'partner' }])
      t.match(config.revocation, {
        listen: { host: '0.0.0.0', port: 3001 },
        key: /internal_key$/,
        relay: { url: 'http://gatehouse-relay:8100/api', key: /api_key$/ }
      })
      t.match(await checkGatewayFiles(env), { errors: [], warnings: [] })
    })

    t.test(
      'only the permitted pods reach the internal API, and the gateway reaches what it is configured for',
      async (t) => {
        const [port] = manifestOf(all, 'Service', 'gatehouse-gateway-internal').spec.ports
        t.match(port, { port: 3001, targetPort: 'internal' })
        t.match(container.ports, [{ name: 'http' }, { name: 'internal', containerPort: 3001 }])
        const { ingress, egress } = manifestOf(all, 'NetworkPolicy', 'gatehouse-gateway').spec
        t.same(ingress[1], {
          from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'backend' } } }],
          ports: [{ port: 'internal' }]
        })
        t.match(egress.slice(-3), [
          { ports: [{ port: 4100 }] },
          { ports: [{ port: 8443 }] },
          { to: [{ podSelector: { matchLabels: labelsOf('relay') } }], ports: [{ port: 8100 }] }
        ])
        t.match(manifestOf(all, 'NetworkPolicy', 'gatehouse-relay').spec.ingress[0].from.at(-1), {
          podSelector: { matchLabels: labelsOf('gateway') }
        })
        t.notOk(JSON.stringify(all.filter(({ kind }) => kind === 'Ingress')).includes('internal'))
      }
    )
  })

  t.test('gateway.oidc configures sign-in and permits connections to the provider', async (t) => {
    const all = render('--set', 'gateway.oidc.issuer=https://login.example.com,gateway.oidc.clientId=gatehouse')
    const settings = settingsOf(all, 'gateway')
    const values = Object.entries(settings).map(([name, value]) =>
      name.endsWith('_FILE') ? [name.slice(0, -'_FILE'.length), `a-long-secret-from-the-file-${value}`] : [name, value]
    )
    const config = gatewayConfig({
      NODE_ENV: 'production',
      ...Object.fromEntries(values),
      REDIS_URL: 'redis://redis:6379'
    })
    t.match(config.oidc, { providers: [{ clientId: 'gatehouse' }], exchangeSecret: /exchange_secret$/ })
    t.match(manifestOf(all, 'NetworkPolicy', 'gatehouse-gateway').spec.egress.at(-1), { ports: [{ port: 443 }] })
  })

  t.test('network policies permit connections to every configured address', async (t) => {
    const openPorts = (program: string, ...args: string[]): unknown[] => {
      const rules: { to?: unknown; ports: { port: number }[] }[] = manifestOf(
        render(...args),
        'NetworkPolicy',
        `gatehouse-${program}`
      ).spec.egress
      return rules.slice(1).flatMap(({ to, ports }) => (to === undefined ? ports.map(({ port }) => port) : []))
    }
    for (const program of PROGRAMS) {
      t.same(openPorts(program), [], 'nothing but DNS, backend and Redis')
      const collector = `${program}.settings.OTEL_EXPORTER_OTLP_ENDPOINT`
      t.same(openPorts(program, '--set', `${collector}=http://collector.tracing:4318`), [4318])
      t.same(openPorts(program, '--set', `${collector}=https://traces.example.com/otlp`), [443])
      t.same(
        openPorts(program, '--set', `${program}.settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/v1/traces`),
        [80]
      )
    }
    const oidc = 'gateway.oidc.clientId=gatehouse,gateway.oidc.issuer'
    t.same(openPorts('gateway', '--set', `${oidc}=https://login.example.com:8443/realms/a`), [8443])
    const keys = 'relay.config.client.token.jwks_public_endpoint=https://login.example.com/keys'
    t.same(openPorts('relay', '--set', keys), [443])
  })

  t.test('network policies permit connections to Redis Sentinel', async (t) => {
    for (const program of PROGRAMS) {
      const { egress } = manifestOf(render(), 'NetworkPolicy', `gatehouse-${program}`).spec
      t.match(egress.at(-1), {
        to: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'redis' } } }],
        ports: [{ port: 6379 }, { port: 26379 }]
      })
    }
  })

  t.test('a longer SHUTDOWN_DELAY_MS extends the time that Kubernetes waits for a pod', async (t) => {
    const graceSeconds = (program: string, delayMs: string): number =>
      manifestOf(
        render('--set', `${program}.settings.SHUTDOWN_DELAY_MS=${delayMs}`),
        'Deployment',
        `gatehouse-${program}`
      ).spec.template.spec.terminationGracePeriodSeconds
    t.equal(graceSeconds('gateway', '20000'), 45)
    t.equal(graceSeconds('relay', '20000'), 60)
    t.equal(graceSeconds('relay', 'null'), 40, 'without a delay')
  })

  t.test('settings of a values file keep their text', async (t) => {
    const file = join(t.testdir(), 'values.yaml')
    writeFileSync(file, 'gateway: { settings: { BODY_LIMIT: 10485760, COOKIE_SECURE: true, LOG_LEVEL: warn } }\n')
    t.match(settingsOf(render('--values', file), 'gateway'), {
      BODY_LIMIT: '10485760',
      COOKIE_SECURE: 'true',
      LOG_LEVEL: 'warn',
      SHUTDOWN_DELAY_MS: '5000'
    })
  })

  t.test('gateway.web copies the files of an image into WEB_ROOT', async (t) => {
    const all = render('--set', 'gateway.web.image=page:1.0.0,gateway.web.path=/dist')
    t.match(settingsOf(all, 'gateway'), { WEB_ROOT: '/web' })
    const pod = manifestOf(all, 'Deployment', 'gatehouse-gateway').spec.template.spec
    const [web] = pod.initContainers
    t.same(web.command, ['cp', '-r', '--preserve=timestamps', '/dist/.', '/web'])
    t.match(pod.containers[0].volumeMounts, [{}, {}, { name: 'web', mountPath: '/web', readOnly: true }])
    t.match(pod.volumes, [{}, {}, { name: 'web', emptyDir: {} }])
  })

  t.test('gateway.routes mounts an OpenAPI document where GATEWAY_ROUTES points', async (t) => {
    const document = `\n  # ${'x'.repeat(200)}\n${JSON.stringify(DOCUMENT, null, 2)}\n`
    const file = join(t.testdir(), 'openapi.json')
    writeFileSync(file, document)
    const all = render('--set-file', `gateway.routes=${file}`)
    const { GATEWAY_ROUTES = '' } = settingsOf(all, 'gateway')
    const { data = {} } = manifestOf(all, 'ConfigMap', 'gatehouse-gateway-routes')
    t.same(data, { 'routes.yaml': document }, 'unchanged')
    const pod = manifestOf(all, 'Deployment', 'gatehouse-gateway').spec.template.spec
    const { mountPath } = pod.containers[0].volumeMounts.at(-1)
    t.equal(GATEWAY_ROUTES, `${mountPath}/routes.yaml`)
    t.match(pod.volumes.at(-1), { name: 'routes', configMap: { name: 'gatehouse-gateway-routes' } })

    const mounted = join(t.testdirName, 'routes.yaml')
    writeFileSync(mounted, data['routes.yaml'] ?? '')
    t.same((await readRoutesFile(mounted)).warnings, [])
  })

  t.test('environment, volumes, sidecars and annotations are added to the pods of each program', async (t) => {
    for (const program of PROGRAMS) {
      const all = render('--set-json', `${program}=${JSON.stringify(ADDITIONS)}`)
      const { metadata, spec } = manifestOf(all, 'Deployment', `gatehouse-${program}`).spec.template
      t.match(metadata.annotations, { 'example.com/owner': 'platform', 'checksum/settings': /^[0-9a-f]{64}$/ })
      const [container, sidecar] = spec.containers
      t.equal(container.name, program)
      t.same(container.env, ADDITIONS.extraEnv)
      t.same(container.volumeMounts.at(-1), ADDITIONS.extraVolumeMounts[0])
      t.same(spec.volumes.at(-1), ADDITIONS.extraVolumes[0])
      t.same(sidecar, ADDITIONS.extraContainers[0])
    }
  })

  t.test('RELAY_UPSTREAM opens the network between gateway and relay', async (t) => {
    const all = render('--set', 'gateway.settings.RELAY_UPSTREAM=http://gatehouse-relay:8100')
    const gateway = manifestOf(all, 'NetworkPolicy', 'gatehouse-gateway').spec
    t.match(gateway.egress.at(-1), {
      to: [{ podSelector: { matchLabels: labelsOf('relay') } }],
      ports: [{ port: 8100 }]
    })
    const relay = manifestOf(all, 'NetworkPolicy', 'gatehouse-relay').spec
    t.match(relay.ingress[0].from.at(-1), { podSelector: { matchLabels: labelsOf('gateway') } })
  })

  t.test('a changed setting or config file restarts the pods', async (t) => {
    const checksum = (program: string, ...args: string[]): string =>
      manifestOf(render(...args), 'Deployment', `gatehouse-${program}`).spec.template.metadata.annotations[
        'checksum/settings'
      ]
    t.not(checksum('gateway'), checksum('gateway', '--set', 'gateway.settings.LOG_LEVEL=warn'))
    t.not(checksum('relay'), checksum('relay', '--set', 'relay.config.client.ping_interval=20s'))
    t.not(checksum('gateway'), checksum('gateway', '--set', 'gateway.routes=openapi: 3.1.0'))
    t.not(checksum('gateway'), checksum('gateway', '--set', 'gateway.documents.a\\.yaml=openapi: 3.1.0'))
    t.equal(checksum('relay'), checksum('relay', '--set', 'gateway.settings.LOG_LEVEL=warn'))
  })

  t.test('the packaged chart contains the alerts and the dashboards of deploy/', async (t) => {
    const folder = t.testdir()
    spawnSync(helm, ['package', CHART, '--destination', folder])
    const packaged = join(folder, `gatehouse-${packageFile.version}.tgz`)
    const files = spawnSync('tar', ['--list', '--gzip', '--file', packaged], { encoding: 'utf8' }).stdout
    for (const file of ['gatehouse-alerts.yml', 'grafana/gateway.json', 'grafana/relay.json'])
      t.match(files, `gatehouse/files/${file}\n`)
    const all = render('--set', 'monitoring.enabled=true,monitoring.dashboards=true')
    t.same(manifestOf(all, 'PrometheusRule').spec, parse(shipped('deploy/prometheus/gatehouse-alerts.yml')))
    const data = manifestOf(all, 'ConfigMap', 'gatehouse-dashboards').data ?? {}
    for (const program of PROGRAMS)
      t.same(JSON.parse(data[`gatehouse-${program}.json`] ?? ''), JSON.parse(shipped(`deploy/grafana/${program}.json`)))
  })

  t.test('every rendered resource conforms to its schema', async (t) => {
    const variants = [
      [
        '--set',
        'gatewayApi.enabled=true,gatewayApi.className=example,monitoring.enabled=true,monitoring.dashboards=true'
      ],
      [
        '--set',
        'gateway.oidc.issuer=https://login.example.com,gateway.oidc.clientId=gatehouse,gateway.web.image=page:1,relay.autoscaling.connections=0,image.pullSecrets[0].name=pull'
      ]
    ]
    const gateway = { ...ADDITIONS, ...WITH_FILES, routes: JSON.stringify(DOCUMENT) }
    variants.push([
      '--set-json',
      `gateway=${JSON.stringify(gateway)}`,
      '--set-json',
      `relay=${JSON.stringify(ADDITIONS)}`
    ])
    const validateCrd = crdValidator(await prepareCrds(machine, silent))
    for (const args of variants) {
      const all = render(...args)
      const isBuiltIn = ({ apiVersion }: Manifest): boolean => !/monitoring|gateway\.networking/.test(apiVersion)
      t.same(await kubernetesErrors(t, all.filter(isBuiltIn)), [])
      t.same(all.filter((one) => !isBuiltIn(one)).flatMap(validateCrd), [])
    }
  })

  t.test('the schemas find misspelled fields', async (t) => {
    const plain = await plainManifests()
    const route = required(plain('gateway-api').find(({ kind }) => kind === 'HTTPRoute'))
    const validateCrd = crdValidator(await prepareCrds(machine, silent))
    t.match(validateCrd({ ...route, spec: { ...route.spec, hostname: ['a'] } }), [/hostname/])
    const service = manifestOf(plain('gateway'), 'Service')
    const wrong = { ...service, spec: { ...service.spec, selectors: {} } }
    t.match(await kubernetesErrors(t, [wrong]), [/1\.25.*selectors/, /1\.37.*selectors/])
  })
})

/** Errors of built-in resources in the oldest supported and the newest version of Kubernetes. */
const kubernetesErrors = async (t: Test, all: readonly Manifest[]): Promise<string[]> => {
  const python = await prepareKubernetesSchemas(machine, silent)
  const file = join(t.testdir(), 'manifests.yaml')
  writeFileSync(file, all.map((one) => JSON.stringify(one)).join('\n---\n'))
  const args = ['-m', 'kubernetes_validate', '--strict', '-k', '1.25', '-k', '1.37', file]
  const { stdout, stderr } = spawnSync(python, args, { encoding: 'utf8' })
  const lines = `${stdout}${stderr}`.trim().split('\n')
  t.equal(lines.length, 2 * all.length, 'one line for each resource and version')
  return lines.filter((line) => !line.startsWith('INFO '))
}
