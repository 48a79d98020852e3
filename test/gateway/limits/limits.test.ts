import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { gatewayConfig } from '../../../src/gateway/config.js'
import { SettingsError } from '../../../src/shared/env.js'
import { eventually } from '../../helper/eventually.js'
import { startGateway, type TestGateway, type TestGatewayOptions, tokenOf } from '../../helper/gateway.js'
import type { HttpResponse } from '../../helper/http.js'
import { startBackend } from '../../helper/recording-backend.js'
import { startRedis } from '../../helper/redis.js'
import { PATIENT_TIMEOUTS } from '../../helper/redis-time.js'
import { folderOf } from '../upstreams/upstreams-fixture.js'

const fileOf = (t: Test, content: unknown, name = 'limits.json'): string => {
  const path = join(t.testdir(), name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const start = (t: Test, limits: unknown, options: TestGatewayOptions = {}): Promise<TestGateway> =>
  startGateway(t, {
    ...options,
    env: { GATEWAY_LIMITS: fileOf(t, limits), TRUST_PROXY: 'loopback', ...options.env }
  })

interface Sender {
  readonly user?: unknown
  readonly address?: string
  readonly method?: string
}

const get = (gateway: TestGateway, path: string, { user, address = '203.0.113.1', method = 'GET' }: Sender = {}) =>
  gateway.send(path, {
    method,
    headers: {
      'x-forwarded-for': address,
      ...(user === undefined ? {} : { cookie: `auth_token=${tokenOf('operator', { userId: user })}` })
    }
  })

const statuses = async (count: number, request: () => Promise<HttpResponse>): Promise<number[]> => {
  const all: number[] = []
  while (all.length < count) all.push((await request()).status)
  return all
}

/** So slow that no token is added during a test. */
const SLOW = { rate: 1, per_s: 86_400 }

t.test('a limit by address', async (t) => {
  const clock = { ms: 0 }
  const limits = [{ name: 'reports', paths: ['/api/reports'], by: 'address', rate: 2, per_s: 60, burst: 3 }]
  const gateway = await start(t, limits, { now: () => clock.ms })

  t.test('requests beyond the burst are 429 with the headers of the limit', async (t) => {
    const first = await get(gateway, '/api/reports/1')
    t.equal(first.status, 200)
    t.match(first.headers, { 'ratelimit-limit': '3', 'ratelimit-remaining': '2', 'ratelimit-reset': '30' })
    t.same(await statuses(3, () => get(gateway, '/api/reports')), [200, 200, 429])
    const { code, headers, json } = await get(gateway, '/api/reports')
    t.equal(code, 'RATE_LIMITED')
    t.match(headers, { 'ratelimit-remaining': '0', 'ratelimit-reset': '90', 'retry-after': '30' })
    t.match(json(), { success: false, error: { code: 'RATE_LIMITED' } })
  })

  t.test('there is one audit record for a bucket in a minute', async (t) => {
    const records = (await gateway.auditRecords()).filter(({ event }) => event === 'rate_limited')
    t.match(records, [{ reason: 'limit-reports', status: 429, ip: '203.0.113.1' }])
    t.equal(records.length, 1)
  })

  t.test('a token is added after its interval', async (t) => {
    clock.ms += 30_000
    t.same(await statuses(2, () => get(gateway, '/api/reports')), [200, 429])
    clock.ms += 3_600_000
    t.same(await statuses(4, () => get(gateway, '/api/reports')), [200, 200, 200, 429], 'never more than the burst')
  })

  t.test('other addresses and paths have no part in it', async (t) => {
    t.equal((await get(gateway, '/api/reports', { address: '203.0.113.2' })).status, 200)
    const { status, headers } = await get(gateway, '/api/reports-of-others')
    t.equal(status, 200)
    t.equal(headers['ratelimit-limit'], undefined)
  })

  t.test('the addresses of an IPv6 network share a bucket', async (t) => {
    const from = (host: string) => get(gateway, '/api/reports', { address: `2001:db8:1:2::${host}` })
    t.same([(await from('1')).status, (await from('2')).status, (await from('ffff')).status], [200, 200, 200])
    t.equal((await from('3')).status, 429)
    t.equal((await get(gateway, '/api/reports', { address: '2001:db8:1:3::1' })).status, 200)
  })
})

t.test('a limit by user', async (t) => {
  const gateway = await start(t, [{ name: 'zones', paths: ['/api/zones'], by: 'user', burst: 2, ...SLOW }])

  t.test('a user is the same at every address and in every spelling of the id', async (t) => {
    t.equal((await get(gateway, '/api/zones', { user: 7, address: '203.0.113.1' })).status, 200)
    t.equal((await get(gateway, '/api/zones', { user: '7', address: '203.0.113.2' })).status, 200)
    t.equal((await get(gateway, '/api/zones', { user: 7, address: '203.0.113.3' })).status, 429)
    t.equal((await get(gateway, '/api/zones', { user: 8, address: '203.0.113.1' })).status, 200)
  })

  t.test('a user has one audit record in a minute, from all addresses', async (t) => {
    for (const address of ['203.0.113.4', '203.0.113.5', '203.0.113.6'])
      await get(gateway, '/api/zones', { user: 7, address })
    const records = (await gateway.auditRecords()).filter(({ event }) => event === 'rate_limited')
    t.match(records, [{ reason: 'limit-zones', user: { id: '7' } }])
    t.equal(records.length, 1)
  })

  t.test('requests without a valid token count for their address', async (t) => {
    const anonymous = { address: '203.0.113.9' }
    t.same(await statuses(3, () => get(gateway, '/api/zones', anonymous)), [200, 200, 429])
    const forged = { 'x-forwarded-for': '203.0.113.9', cookie: 'auth_token=a.b.c' }
    t.equal((await gateway.send('/api/zones', { headers: forged })).status, 429)
    t.equal((await get(gateway, '/api/zones', { ...anonymous, user: 'address 203.0.113.9' })).status, 200)
  })
})

t.test('a limit by both counts for the user and for the address', async (t) => {
  const gateway = await start(t, [{ name: 'all', paths: ['/'], methods: ['GET'], by: 'both', burst: 2, ...SLOW }])
  const ada = (address: string) => get(gateway, '/api/zones', { user: 'ada', address })
  t.same([(await ada('203.0.113.1')).status, (await ada('203.0.113.2')).status], [200, 200])
  t.equal((await ada('203.0.113.3')).status, 429, 'the user')
  t.equal((await get(gateway, '/api/zones', { user: 'bob', address: '203.0.113.1' })).status, 200)
  t.equal((await get(gateway, '/api/zones', { user: 'eve', address: '203.0.113.1' })).status, 429, 'the address')
  t.equal((await get(gateway, '/api/zones', { address: '203.0.113.1', method: 'HEAD' })).status, 429, 'the work of GET')
  t.equal(
    (await get(gateway, '/api/zones', { address: '203.0.113.1', method: 'OPTIONS' })).status,
    200,
    'another method'
  )
})

/** Variants of `/api/reports` that a lenient backend could serve as it. */
const VARIANTS = [
  ...[
    'reports.json',
    'reports.',
    'reports%20',
    '%20reports',
    'reports,x',
    'reports~',
    'reports=',
    'reports@7',
    'reports:80'
  ],
  ...[
    'r%C3%A9ports',
    'reports!',
    "reports'",
    'reports(1)',
    'reports*',
    'reports+',
    'reports&x',
    'reports$',
    '.reports',
    '~reports'
  ],
  ...['reports%C2%A0', 'reports.json/7', 'reports%20/7', 'reports.csv.gz', '@reports/x', 'reports%3A1'],
  ...['reports%2C', 'reports%E3%80%80', 'repo%CC%81rts', '%20/reports', '!/reports/7', 'reports%E2%80%BE']
].map((name) => `/api/${name}`)

/** Other spellings, which are rejected. */
const SPELLINGS = [
  ...[
    'Reports',
    'REPORTS/x',
    '%EF%BD%92eports',
    'report%C5%BF',
    'rep%C2%ADorts',
    'reports%E2%80%8B/x',
    '%E2%93%A1eports'
  ],
  ...[
    'reports%00',
    'reports%2Fx',
    '/reports',
    'reports//x',
    './reports',
    'x/../reports',
    'reports;x',
    '%72eports',
    'reports\\x'
  ]
].map((name) => `/api/${name}`)

t.test('no spelling of a path avoids its limit', async (t) => {
  const limits = [{ name: 'reports', paths: ['/api/reports'], by: 'address', ...SLOW }]
  const gateway = await start(t, limits)
  t.equal((await get(gateway, '/api/reports')).status, 200)
  for (const path of [...VARIANTS, '/api/reports/', '/api/reports/x?y'])
    t.equal((await get(gateway, path)).status, 429, path)
  for (const path of [...SPELLINGS, '/API/reports', '/api%2Freports'])
    t.equal((await get(gateway, path)).status, 400, path)
  t.equal(gateway.backend.requests.length, 1)
  for (const path of ['/api/reports-of-others', '/api/report', '/api/reports7', '/api/x/reports', '/api/my.reports'])
    t.equal((await get(gateway, path)).status, 200, path)
})

t.test('no spelling of a path of a row avoids its limit', async (t) => {
  const backend = await startBackend(t)
  const row = { name: 'wiki', url: backend.url, paths: ['/wiki'] }
  const limits = [{ name: 'pages', paths: ['/wiki/pages'], by: 'address', ...SLOW }]
  const gateway = await start(t, limits, {
    backend,
    env: { GATEWAY_UPSTREAMS: join(folderOf(t, { 'rows.json': JSON.stringify([row]) }), 'rows.json') }
  })
  const status = async (path: string) => (await get(gateway, path)).status
  t.same([await status('/wiki/pages'), await status('/wiki/pages/x')], [200, 429])
  t.same(
    [await status('/wiki/Pages'), await status('/wiki/pages.html'), await status('/wiki/pages%20/x')],
    [400, 429, 429]
  )
  t.equal(await status('/wiki/images'), 200)
})

t.test('a limit of a route applies to its spellings, not to other routes', async (t) => {
  const paths = {
    '/api/tiles/{z}-{x}.png': { get: {} },
    '/api/tiles/{id}': { get: {} },
    '/api/tiles/Legend': { get: {} }
  }
  const files = { 'routes.json': JSON.stringify({ openapi: '3.1.0', paths }) }
  const GATEWAY_ROUTES = join(folderOf(t, files), 'routes.json')
  const limits = [{ name: 'tiles', paths: ['/api/tiles/{z}-{x}.png'], by: 'address', burst: 2, ...SLOW }]
  const gateway = await start(t, limits, { env: { GATEWAY_ROUTES } })
  const status = async (path: string) => (await get(gateway, path)).status
  t.same([await status('/api/tiles/1-2.png'), await status('/api/tiles/3-4.png')], [200, 200])
  t.equal(await status('/api/tiles/5-6.png'), 429)
  t.same([await status('/api/tiles%20/1-2.png'), await status('/api/tiles.json/1-2.png')], [429, 429])
  t.same([await status('/api/tiles/7'), await status('/api/tiles/Legend'), await status('/api/tiles')], [200, 200, 200])
})

t.test('a limit of a route applies to all values of its parameters', async (t) => {
  const gateway = await start(t, [{ name: 'zone', paths: ['/api/zones/{id}'], by: 'address', burst: 2, ...SLOW }])
  t.same([(await get(gateway, '/api/zones/1')).status, (await get(gateway, '/api/zones/2')).status], [200, 200])
  t.equal((await get(gateway, '/api/zones/3')).status, 429)
  t.equal((await get(gateway, '/api/zones')).status, 200, 'another route')
  t.rejects(start(t, [{ name: 'x', paths: ['/api/nothing/{id}'], by: 'user', rate: 1 }]), {
    errors: [/GATEWAY_LIMITS limits\.json:1: entry 1, paths\.0 must not be \/api\/nothing\/\{id\}/]
  })
})

t.test('a limit of a route applies to methods that the route does not declare', async (t) => {
  const gateway = await start(t, [{ name: 'zone', paths: ['/api/zones/{id}'], by: 'address', ...SLOW }])
  t.equal((await get(gateway, '/api/zones/1')).status, 200)
  for (const method of ['GET', 'HEAD', 'OPTIONS'])
    t.equal((await get(gateway, '/api/zones/2', { method })).status, 429, method)
  for (const path of ['/api/zones', '/api/zones/2/x', '/api/floors/2'])
    t.equal((await get(gateway, path, { method: 'OPTIONS' })).status, 200, path)
})

t.test('with Redis', async (t) => {
  const limits = [
    { name: 'zones', paths: ['/api/zones'], by: 'both', burst: 3, ...SLOW },
    { name: 'all', paths: ['/api'], by: 'user', burst: 5, ...SLOW }
  ]
  const startWith = (url: string) => start(t, limits, { env: { REDIS_URL: url }, redisTimeouts: PATIENT_TIMEOUTS })

  t.test('two gateways share the buckets', async (t) => {
    const { url } = await startRedis(t)
    const [one, two] = [await startWith(url), await startWith(url)]
    const ada = (gateway: TestGateway, address = '203.0.113.1') => get(gateway, '/api/zones', { user: 'ada', address })
    t.same([(await ada(one)).status, (await ada(two)).status, (await ada(one)).status], [200, 200, 200])
    const rejected = await ada(two)
    t.equal(rejected.status, 429)
    t.match(rejected.headers, { 'ratelimit-limit': '3', 'ratelimit-remaining': '0' })
    t.equal((await ada(one, '203.0.113.2')).status, 429, 'the same user at another address')
    t.equal(
      (await get(one, '/api/other', { user: 'ada' })).headers['ratelimit-remaining'],
      '1',
      'nothing was taken from it'
    )
  })

  t.test('while Redis is unavailable each gateway limits alone, and says so', async (t) => {
    const redis = await startRedis(t)
    const gateway = await startWith(redis.url)
    const isLocal = async () => /^gateway_limits_local 1$/m.test((await gateway.send('/metrics')).body)
    t.notOk(await isLocal())
    await redis.kill()
    await eventually(isLocal)
    const eve = () => get(gateway, '/api/zones', { user: 'eve', address: '203.0.113.7' })
    t.same(await statuses(4, eve), [200, 200, 200, 429])
    await redis.restart()
    await eventually(async () => !(await isLocal()))
    t.equal((await eve()).status, 200, 'the buckets in Redis')
  })
})

t.test('invalid files', async (t) => {
  const errorsOf = (content: unknown, name?: string): readonly string[] => {
    const env = {
      NODE_ENV: 'test',
      GATEWAY_LIMITS: content === null ? '/nowhere/limits.yaml' : fileOf(t, content, name)
    }
    try {
      gatewayConfig(env)
      return []
    } catch (error) {
      if (error instanceof SettingsError) return error.errors
      throw error
    }
  }
  const row = { name: 'a', paths: ['/api'], by: 'user', rate: 1 }
  t.same(errorsOf([row]), [])
  t.same(errorsOf('- name: a\n  paths: [/api]\n  by: both\n  rate: 5\n', 'limits.yaml'), [])
  t.match(errorsOf(null), [/^GATEWAY_LIMITS must name a readable file/])
  t.match(errorsOf('a: ['), [/^GATEWAY_LIMITS limits.json:/])
  t.match(errorsOf([]), [/a list with at least one entry/])
  for (const path of ['/api/%61', '/api/100%', '/api//x', '/api/x/', '/api/{a', '/api/a b', '/api/../x'])
    t.match(errorsOf([{ ...row, paths: [path] }]), [/paths\.0 must be a path such as/], path)
  const yaml = '- name: A b\n  paths: [api]\n  by: all\n  rate: 0\n- paths: []\n  burst: x\n  speed: 1\n'
  const errors = errorsOf(yaml, 'limits.yaml')
  for (const part of [
    'limits.yaml:1: entry 1, name',
    'limits.yaml:2',
    'limits.yaml:3: entry 1, by must be user, address or both',
    'limits.yaml:4: entry 1, rate',
    'entry 2, name is required',
    'limits.yaml:6: entry 2, burst',
    'limits.yaml:7: entry 2, speed is not a known field'
  ])
    t.ok(
      errors.some((error) => error.includes(part)),
      part
    )
  t.match(errorsOf([row, { ...row, burst: 0 }]), [/entry 2, burst/, /entry 2, name must be unique/])
})
