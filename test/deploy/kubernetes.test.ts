import t from 'tap'
import { relayConfig } from '../../src/relay/config/config.js'
import { NEEDS_HELM, plainManifests } from './helm-chart.js'
import { labelsOf, manifestOf } from './kubernetes-manifests.js'
import { isSetting, missingSettings, PROGRAMS } from './program-settings.js'

const CLIENT_PATHS = [
  '/connection/websocket',
  '/connection/http_stream',
  '/connection/sse',
  '/connection/uni_websocket',
  '/connection/uni_http_stream',
  '/connection/uni_sse',
  '/emulation'
]

t.test('plain manifests', NEEDS_HELM, async (t) => {
  const read = await plainManifests()

  for (const program of PROGRAMS) {
    t.test(`${program}.yaml`, async (t) => {
      const all = read(program)
      const labels = labelsOf(program)
      const port = program === 'gateway' ? 3000 : 8100
      const deployment = manifestOf(all, 'Deployment').spec
      const pod = deployment.template.spec
      const [container] = pod.containers

      t.test(`${program}.yaml contains one document of each kind`, async (t) => {
        t.same(all.map(({ kind }) => kind).toSorted(), [
          ...(program === 'relay' ? ['ConfigMap'] : []),
          ...['ConfigMap', 'Deployment', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Service']
        ])
        t.same(
          all.map(({ metadata }) => metadata.labels),
          all.map(() => labels)
        )
      })

      t.test(`the selectors in ${program}.yaml match the labels of the pods`, async (t) => {
        t.same(deployment.template.metadata.labels, labels)
        t.same(deployment.selector.matchLabels, labels)
        t.match(manifestOf(all, 'Service').spec, { selector: labels, ports: [{ port, targetPort: 'http' }] })
        t.match(manifestOf(all, 'PodDisruptionBudget').spec, { selector: { matchLabels: labels }, maxUnavailable: 1 })
        t.match(container.ports, [{ name: 'http', containerPort: port }])
      })

      t.test(`${program}.yaml sets all required settings and no unknown ones`, async (t) => {
        const names = Object.keys(manifestOf(all, 'ConfigMap', `gatehouse-${program}`).data ?? {})
        t.same(
          names.filter((name) => !isSetting(program, name)),
          []
        )
        t.same(missingSettings(program, names), [])
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
        const { SHUTDOWN_DELAY_MS } = manifestOf(all, 'ConfigMap', `gatehouse-${program}`).data ?? {}
        const delaySeconds = Number(SHUTDOWN_DELAY_MS) / 1000
        t.ok(delaySeconds >= 5, 'proxies have time to remove the pod')
        t.ok(pod.terminationGracePeriodSeconds > delaySeconds + 15, 'longer than the shutdown of the program')
      })
    })
  }

  t.test('the relays in relay.yaml share a Redis and scale by their connections', async (t) => {
    t.match(manifestOf(read('relay'), 'ConfigMap', 'gatehouse-relay').data, { RELAY_ENGINE: 'redis' })
    t.match(manifestOf(read('relay'), 'HorizontalPodAutoscaler').spec, {
      scaleTargetRef: { kind: 'Deployment', name: 'gatehouse-relay' },
      metrics: [{ type: 'Pods', pods: { metric: { name: 'centrifugo_node_num_clients' } } }]
    })
  })

  t.test('the relay accepts the config file of relay.yaml, mounted where RELAY_CONFIG points', async (t) => {
    const all = read('relay')
    const { RELAY_CONFIG = '' } = manifestOf(all, 'ConfigMap', 'gatehouse-relay').data ?? {}
    const file = manifestOf(all, 'ConfigMap', 'gatehouse-relay-config').data?.['relay.json'] ?? ''
    const secrets = { REALTIME_HMAC_SECRET: 'a', REALTIME_API_KEY: 'b' }
    const config = relayConfig({ RELAY_CONFIG, ...secrets }, () => file)
    const withoutFile = relayConfig(secrets, () => '')
    t.same(
      config.channels.namespaces,
      withoutFile.channels.namespaces,
      'its channels are those of a relay without a file'
    )

    const pod = manifestOf(all, 'Deployment').spec.template.spec
    const mount = pod.containers[0].volumeMounts.find(({ name }: { name: string }) => name === 'config')
    t.equal(RELAY_CONFIG, `${mount.mountPath}/relay.json`)
    t.match(
      pod.volumes.find(({ name }: { name: string }) => name === 'config'),
      { configMap: { name: 'gatehouse-relay-config' } }
    )
  })

  t.test('proxies reach the client transports of the relay only', async (t) => {
    const ingress = manifestOf(read('ingress'), 'Ingress', 'gatehouse-relay').spec
    t.same(
      ingress.rules[0].http.paths.map(({ path, pathType }: { path: string; pathType: string }) => [path, pathType]),
      CLIENT_PATHS.map((path) => [path, 'Exact'])
    )
    const route = manifestOf(read('gateway-api'), 'HTTPRoute', 'gatehouse-relay').spec
    t.same(
      route.rules[0].matches,
      CLIENT_PATHS.map((value) => ({ path: { type: 'Exact', value } }))
    )
  })

  t.test('Ingress and Gateway API route each host to its service', async (t) => {
    for (const { metadata, spec } of read('ingress')) {
      for (const { backend } of spec.rules[0].http.paths)
        t.same(backend, { service: { name: metadata.name, port: { name: 'http' } } })
    }
    const routes = read('gateway-api').filter(({ kind }) => kind === 'HTTPRoute')
    const { listeners } = manifestOf(read('gateway-api'), 'Gateway').spec
    for (const { spec } of routes) {
      const [{ name, sectionName }] = spec.parentRefs
      t.equal(name, 'gatehouse')
      const listener = listeners.find((one: { name: string }) => one.name === sectionName)
      if (listener.hostname !== undefined) t.same(spec.hostnames, [listener.hostname])
    }
    for (const [name, port] of [
      ['gatehouse-gateway', 3000],
      ['gatehouse-relay', 8100]
    ])
      t.match(routes.find(({ metadata }) => metadata.name === name)?.spec.rules, [{ backendRefs: [{ name, port }] }])
  })

  t.test('network policies cover both programs in both directions', async (t) => {
    const policies = read('network-policies')
    for (const program of PROGRAMS) {
      const { spec } = manifestOf(policies, 'NetworkPolicy', `gatehouse-${program}`)
      t.same(spec.podSelector.matchLabels, labelsOf(program))
      t.same(spec.policyTypes, ['Ingress', 'Egress'])
      t.match(spec.egress, [{ ports: [{ port: 53, protocol: 'UDP' }, { port: 53 }] }])
      for (const { from, ports } of spec.ingress) {
        t.ok(from.length > 0, 'an empty list would permit every source')
        t.same(ports, [{ port: 'http' }])
      }
    }
  })
})
