import t from 'tap'
import { startChild } from '../../test/helper/child.js'
import { environment } from '../../test/helper/environment.js'
import { send } from '../../test/helper/http.js'

t.test('the identity provider of the demo', async (t) => {
  t.test('the demo identity provider prints its address, accepts the gateway and exits on a signal', async (t) => {
    const child = await startChild(t, process.execPath, ['dist/demo/oidc/provider.js'], {
      PATH: environment.path,
      DEMO_OIDC_PORT: '0',
      DEMO_OIDC_CLIENT_ID: 'demo',
      DEMO_OIDC_APP_URL: 'http://127.0.0.1:4321'
    })
    const line = await child.waitForLine('identity provider at ')
    const issuer = line.slice(line.indexOf('http'))

    const discovered = JSON.parse((await send(issuer, '/.well-known/openid-configuration')).body)
    t.equal(discovered.issuer, issuer)
    t.equal(discovered.end_session_endpoint, `${issuer}/session/end`)
    const query = new URLSearchParams({
      client_id: 'demo',
      response_type: 'code',
      scope: 'openid profile email',
      redirect_uri: 'http://127.0.0.1:4321/auth/oidc/callback',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256'
    })
    const { status, headers } = await send(issuer, `/auth?${query}`)
    t.equal(status, 303)
    t.match(headers.location, '/interaction/')

    child.signal('SIGTERM')
    t.match(await child.exited, { code: 0 })
  })
})
