import { copyFileSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { BlockList } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { demoConfig, demoSettings } from '../../../demo/backend/config.js'
import { relayConfigOf } from '../../../demo/run/relay-config.js'
import { gatewayConfig } from '../../../src/gateway/config.js'
import { gatewaySettings } from '../../../src/gateway/settings.js'
import { relayConfig } from '../../../src/relay/config/config.js'
import { relaySettings } from '../../../src/relay/config/settings.js'
import type { Settings } from '../../../src/shared/env.js'
import { type ComposeService, composeErrors, networksOf, shippedCompose } from './compose-file.js'
import { environmentOf, lastStage } from './dockerfile.js'
import { changed, shipped } from './shipped.js'
import { runTool } from './tool.js'

const COMPOSE = shipped('docker-compose.yml')

t.test('docker-compose.yml contains only known keys', async (t) => {
  t.same(composeErrors(COMPOSE), [])
  const misspelt = changed(COMPOSE, [['read_only: true', 'readonly: true']])
  t.match(composeErrors(misspelt).join('\n'), /readonly/, 'a misspelt key is an error')
})

const { services, networks, volumes, secrets } = shippedCompose()
const each = Object.entries(services)
const service = (name: string): ComposeService => {
  const found = services[name]
  if (found === undefined) throw new Error(`no service ${name}`)
  return found
}
const addressOf = (name: string, network: string): string | null => networksOf(service(name))[network] ?? null

t.test('services of docker-compose.yml', async (t) => {
  for (const [name, { image, build, healthcheck, depends_on = {}, volumes: mounted = [], user }] of each) {
    t.test(`service ${name} has a fixed image version, a health check and existing dependencies`, async (t) => {
      t.match(
        image,
        /^[a-z/-]+:v?\d+\.\d+\.?\d*(?:-[a-z]+)?(?:@sha256:[0-9a-f]{64})?$/,
        'the image has a fixed version'
      )
      if (build === undefined) t.ok(healthcheck, 'has a health check')
      else t.match(shipped(build.dockerfile), /^HEALTHCHECK /m, 'its image has a health check')
      t.notMatch(user, /^0:/, 'does not run as root')
      for (const other of Object.keys(depends_on)) t.ok(services[other], `${other}, which it depends on, exists`)
      for (const [source = ''] of mounted.map((volume) => volume.split(':'))) {
        if (source.startsWith('./')) t.ok(statSync(source), `${source} exists`)
        else t.ok(source in volumes, `${source} is declared`)
      }
    })
  }

  t.test('the dependencies between services have no cycle', async (t) => {
    const started = new Set<string>()
    const ready = (): string[] =>
      each
        .filter(
          ([name, { depends_on = {} }]) => !started.has(name) && Object.keys(depends_on).every((d) => started.has(d))
        )
        .map(([name]) => name)
    for (let next = ready(); next.length > 0; next = ready()) for (const name of next) started.add(name)
    t.equal(started.size, each.length)
  })

  t.test('the images that are built here have the version of the package', async (t) => {
    const { version } = JSON.parse(shipped('package.json'))
    const ours = each.flatMap(([, { image, build }]) => (build === undefined ? [] : [image.split(':')[1]]))
    t.same(new Set(ours), new Set([version]))
  })
})

const rangeOf = (text: string): BlockList => {
  const [base = '', bits] = text.split('/')
  const range = new BlockList()
  range.addSubnet(base, Number(bits))
  return range
}

t.test('networks of docker-compose.yml', async (t) => {
  const onNetwork = (network: string): string[] =>
    each.filter(([, s]) => network in networksOf(s)).map(([name]) => name)

  t.test('each network contains only the services that need it', async (t) => {
    t.same(Object.fromEntries(Object.keys(networks).map((name) => [name, onNetwork(name)])), {
      public: ['caddy'],
      browser: ['caddy', 'gateway', 'relay'],
      backend: ['gateway', 'relay', 'demo-backend'],
      data: ['gateway', 'relay', 'demo-backend', 'redis', 'postgres'],
      metrics: ['gateway', 'relay', 'prometheus'],
      dashboards: ['prometheus', 'grafana']
    })
  })

  t.test('all networks except public and dashboards are internal', async (t) => {
    t.same(
      Object.keys(networks).filter((name) => !networks[name]?.internal),
      ['public', 'dashboards']
    )
  })

  t.test('only Caddy publishes ports, and Grafana on loopback', async (t) => {
    const published = Object.fromEntries(
      each.flatMap(([name, { ports }]) => (ports === undefined ? [] : [[name, ports]]))
    )
    t.same(published, { caddy: ['80:80', '443:443'], grafana: ['127.0.0.1:3300:3000'] })
  })

  t.test('fixed addresses are in the subnet and outside of the dynamic range', async (t) => {
    for (const [, one] of each) {
      for (const [network, address] of Object.entries(networksOf(one))) {
        if (address === null) continue
        const { subnet = '', ip_range = '' } = networks[network]?.ipam.config[0] ?? {}
        t.ok(rangeOf(subnet).check(address), `${address} is in ${network}`)
        t.notOk(rangeOf(ip_range).check(address), 'not in the dynamic range')
      }
    }
  })

  t.test('each service trusts forwarding headers of one proxy and serves metrics to Prometheus only', async (t) => {
    for (const name of ['gateway', 'relay']) {
      const { TRUST_PROXY, METRICS_ALLOW } = service(name).environment ?? {}
      t.equal(TRUST_PROXY, addressOf('caddy', 'browser'))
      t.equal(METRICS_ALLOW, addressOf('prometheus', 'metrics'), 'only Prometheus may read metrics')
    }
    t.equal(service('demo-backend').environment?.TRUST_PROXY, addressOf('gateway', 'backend'))
  })
})

t.test('the relay of docker-compose.yml has the configuration of the demo', async (t) => {
  const { BACKEND_URL } = service('gateway').environment ?? {}
  const backendUrl = String(BACKEND_URL).replace(/\$\{.*:-(\d+)\}/, '$1')
  t.same(JSON.parse(shipped('deploy/compose/relay.json')), relayConfigOf(backendUrl))
})

t.test('secrets of docker-compose.yml', async (t) => {
  const folder = t.testdir()
  const script = join(folder, 'make-secrets.sh')
  copyFileSync('deploy/compose/make-secrets.sh', script)
  const output = await runTool(t, 'sh', [script])
  const made = join(folder, 'secrets')
  const secret = (name: string): string => readFileSync(join(made, name), 'utf8').trim()

  t.test('make-secrets.sh creates all secrets in a folder that only its owner can enter', async (t) => {
    const files = Object.values(secrets).map(({ file }) => file.replace('./deploy/compose/secrets/', ''))
    t.same(readdirSync(made).toSorted(), files.toSorted())
    t.equal(statSync(made).mode & 0o777, 0o700)
    for (const file of files) t.equal(statSync(join(made, file)).mode & 0o777, 0o644, 'containers can read it')
    t.match(output, secret('demo_password'), 'the output contains the password of the demo')
  })

  t.test('the secrets are long and all different', async (t) => {
    for (const name of ['api_secret', 'realtime_hmac_secret', 'realtime_api_key', 'realtime_signing_secret'])
      t.match(secret(name), /^[0-9a-f]{64}$/)
    t.equal(new Set(readdirSync(made).map(secret)).size, readdirSync(made).length)
    t.equal(secret('redis_url'), `redis://:${secret('redis_password')}@redis:6379`)
    t.equal(secret('redis_conf'), `requirepass ${secret('redis_password')}`)
    t.equal(secret('database_url'), `postgres://gatehouse:${secret('postgres_password')}@postgres:5432/gatehouse`)
  })

  t.test('make-secrets.sh does not change existing secrets', async (t) => {
    const before = secret('api_secret')
    await runTool(t, 'sh', [script])
    t.equal(secret('api_secret'), before)
  })

  t.test('each service receives exactly the secrets that it reads', async (t) => {
    for (const [name, { secrets: given = [], environment = {}, command = [], healthcheck = {} }] of each) {
      const read = JSON.stringify([environment, command, healthcheck]).matchAll(/\/run\/secrets\/([a-z_]+)/g)
      t.same(new Set(given), new Set([...read].map(([, file]) => file)), name)
      for (const one of given) t.ok(one in secrets, `${one} is declared`)
    }
  })

  const PROGRAMS: Readonly<
    Record<
      string,
      { readonly dockerfile: string; settings: Settings; readonly read: (env: Record<string, string>) => unknown }
    >
  > = {
    gateway: { dockerfile: 'Dockerfile.gateway', settings: gatewaySettings, read: gatewayConfig },
    relay: {
      dockerfile: 'Dockerfile.relay',
      settings: relaySettings,
      read: (env) => relayConfig(env, (path) => readFileSync(path, 'utf8'))
    },
    'demo-backend': { dockerfile: 'demo/Dockerfile', settings: demoSettings, read: demoConfig }
  }
  for (const [name, { dockerfile, settings, read }] of Object.entries(PROGRAMS)) {
    t.test(`the settings of the ${name} in docker-compose.yml are valid`, async (t) => {
      const page = t.testdir({ 'index.html': '' })
      const given = service(name).environment ?? {}
      for (const variable of Object.keys(given)) t.ok(variable.replace(/_FILE$/, '') in settings, variable)

      const environment = { ...environmentOf(lastStage(shipped(dockerfile))), ...given }
      const here = Object.entries(environment).map(([variable, value]) => [
        variable,
        value
          .replace('/run/secrets', made)
          .replace(/^\/page$/, page)
          .replace(/^\/etc\/gatehouse\//, 'deploy/compose/')
      ])
      t.doesNotThrow(() => read(Object.fromEntries(here)))
      t.equal(environment.NODE_ENV, 'production')
    })
  }
})

t.test('docs/how-to/containers.md lists the variables of docker-compose.yml with their defaults', async (t) => {
  const set = [...COMPOSE.matchAll(/\$\{([A-Z_]+):-([^}]*)\}/g)].map(([, name, value]) => `${name} ${value}`)
  const documented = [...shipped('docs/how-to/containers.md').matchAll(/^\| `([A-Z_]+)` \| (?:`([^`]+)`|unset) \|/gm)]
  t.same(documented.map(([, name, value = '']) => `${name} ${value}`).toSorted(), [...new Set(set)].toSorted())
})

t.test('each port of the container network has one default', async (t) => {
  const of = (name: string) => service(name).environment ?? {}
  t.match(of('caddy'), {
    GATEWAY_UPSTREAM: `gateway:${of('gateway').GATEWAY_PORT}`,
    RELAY_UPSTREAM: `relay:${of('relay').RELAY_PORT}`
  })
  t.equal(of('gateway').BACKEND_URL, `http://demo-backend:${of('demo-backend').DEMO_BACKEND_PORT}`)
  t.equal(of('demo-backend').REALTIME_PUBLISH_URL, `http://relay:${of('relay').RELAY_PORT}/api`)
  const ports = COMPOSE.replaceAll(/\$\{[A-Z_]+:-[^}]*\}/g, '').match(/\b(?:3000|8100|4000)\b/g)
  t.same(ports, ['3000', '3000'], 'only those of Grafana are outside of variables')
})

t.test('gateway, relay and demo backend use the host names of the proxy', async (t) => {
  const { GATEHOUSE_HOST } = service('caddy').environment ?? {}
  t.equal(service('gateway').environment?.PUBLIC_URL, `https://${GATEHOUSE_HOST}`)
  t.equal(service('relay').environment?.RELAY_ALLOWED_ORIGINS, `https://${GATEHOUSE_HOST}`)
  t.equal(service('demo-backend').environment?.REALTIME_CLIENT_URL, `wss://${GATEHOUSE_HOST}/connection/websocket`)
})

t.test('Prometheus in docker-compose.yml', async (t) => {
  t.test('promtool accepts the configuration with the alerts', async (t) => {
    const folder = t.testdir()
    for (const volume of service('prometheus').volumes ?? []) {
      const [source = '', target = ''] = volume.split(':')
      if (source.startsWith('./')) copyFileSync(source, join(folder, target.replace('/etc/prometheus/', '')))
    }
    t.match(await runTool(t, 'promtool', ['check', 'config', join(folder, 'prometheus.yml')]), 'SUCCESS')
  })

  t.test('Prometheus scrapes both programs at the addresses that Caddy forwards to', async (t) => {
    const { GATEWAY_UPSTREAM, RELAY_UPSTREAM } = service('caddy').environment ?? {}
    t.same(parse(shipped('deploy/compose/gatehouse-targets.yml')), [
      { labels: { job: 'gatehouse-gateway' }, targets: [GATEWAY_UPSTREAM] },
      { labels: { job: 'gatehouse-relay' }, targets: [RELAY_UPSTREAM] }
    ])
  })
})

t.test('Grafana is configured with Prometheus and the dashboards', async (t) => {
  const [source] = parse(shipped('deploy/compose/grafana/datasources/prometheus.yml')).datasources
  t.equal(source.url, 'http://prometheus:9090')
  const [provider] = parse(shipped('deploy/compose/grafana/dashboards/gatehouse.yml')).providers
  t.ok(service('grafana').volumes?.includes(`./deploy/grafana:${provider.options.path}:ro`))
  t.same(readdirSync('deploy/grafana').toSorted(), ['gateway.json', 'relay.json'])
})
