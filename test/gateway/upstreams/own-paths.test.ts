import { join } from 'node:path'
import t from 'tap'
import { gatewayPrefixOf } from '../../../src/gateway/upstreams/gateway-prefixes.js'
import { startBackend } from '../../helper/recording-backend.js'
import { gatewaySettingsErrors } from '../../helper/settings-errors.js'
import { APP_HOST, startOidcGateway } from '../oidc/fixture.js'
import { startScriptedProvider } from '../oidc/scripted-provider.js'
import { REVOCATION_ENV } from '../revocation/fixture.js'
import { folderOf } from './upstreams-fixture.js'

const OWN_PATHS = [
  '/auth/verify',
  '/csp-reports',
  '/auth/oidc/login',
  '/auth/oidc/partner/callback',
  '/auth/oidc/partner/backchannel-logout',
  '/api/internal/revoke',
  '/api/internal',
  '/metrics',
  '/CSP-Reports'
]

t.test('a row that has a path of the gateway is rejected', async (t) => {
  for (const path of OWN_PATHS) {
    const rows = [{ name: 'thief', url: 'http://127.0.0.1:4001', paths: [path] }]
    const file = join(folderOf(t, { 'rows.json': JSON.stringify(rows) }), 'rows.json')
    const errors = gatewaySettingsErrors({ GATEWAY_UPSTREAMS: file })
    t.equal(errors.length, 1, path)
    t.match(errors[0], `${gatewayPrefixOf(path)} is a path of the gateway`, path)
  }
})

t.test('a row of all paths gets no request for a path of the gateway, also of a named provider', async (t) => {
  const [one, two] = [await startScriptedProvider(t), await startScriptedProvider(t)]
  const backend = await startBackend(t)
  const rows = [{ name: 'all', url: backend.url, paths: ['/'] }]
  const gateway = await startOidcGateway(t, {
    issuer: one.url,
    providers: [{ id: 'partner', issuer: two.url }],
    env: {
      ...REVOCATION_ENV,
      GATEWAY_UPSTREAMS: join(folderOf(t, { 'rows.json': JSON.stringify(rows) }), 'rows.json'),
      GATEWAY_FORWARD_AUTH: 'true',
      TRUST_PROXY: 'loopback',
      CSP_MODE: 'report-only'
    }
  })
  const status = async (path: string, message = {}): Promise<number> =>
    (await gateway.send(path, { headers: { host: APP_HOST }, ...message })).status
  t.equal(await status('/auth/verify'), 401)
  t.equal(
    await status('/csp-reports', {
      method: 'POST',
      headers: { host: APP_HOST, 'content-type': 'application/csp-report' },
      body: '{"csp-report":{}}'
    }),
    204
  )
  t.equal(await status('/auth/oidc/partner/login'), 303)
  t.equal(await status('/auth/oidc/partner/callback'), 400)
  t.equal(await status('/auth/oidc/stranger/login'), 404)
  t.equal(await status('/api/internal/revoke', { method: 'POST' }), 404, 'on the public listener there is none')
  t.equal(backend.requests.length, 0)
  t.equal(await status('/other'), 200)
  t.equal(backend.requests.length, 1)
  t.equal(gateway.backend.requests.length, 0)
})
