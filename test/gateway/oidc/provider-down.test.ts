import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { required } from '../../helper/required.js'
import { APP, APP_HOST, browserOf, signIn, signInUpToCallback, startOidcGateway, startProvider } from './fixture.js'
import { startScriptedProvider } from './scripted-provider.js'

const AWAY = /cannot be reached/

t.test('unavailable provider', async (t) => {
  t.test('a gateway starts without its provider and discovers it later', async (t) => {
    const provider = await startProvider(t)
    await provider.down()
    const gateway = await startOidcGateway(t, { issuer: provider.url, isDiscovered: false })
    t.equal((await gateway.send('/api/zones')).status, 200, 'everything else is served')

    const browser = browserOf(gateway)
    const page = await browser.visit(`${APP}/auth/oidc/login?returnTo=/floors`)
    t.equal(page.status, 503)
    t.match(page.body, AWAY)
    t.match(page.body, 'href="/auth/oidc/login?returnTo=%2Ffloors"')
    t.match(page.headers['retry-after'], /^\d+$/)
    t.match(
      gateway.logs.find(({ msg }) => msg === 'identity provider discovery failed'),
      // A busy machine may reach the timeout before the connection is refused.
      { level: 40, provider: { code: /^(ECONNREFUSED|OAUTH_TIMEOUT)$/ } }
    )

    await provider.up()
    t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
    t.ok(gateway.logs.some(({ msg }) => msg === 'identity provider discovered'))
  })

  t.test('the provider is discovered in the background without a sign-in', async (t) => {
    const provider = await startScriptedProvider(t)
    const { listener } = provider
    let lookedAt = 0
    const found = new Promise<void>((resolve) => {
      provider.listener = (request, response) => {
        lookedAt += 1
        if (lookedAt === 1) {
          response.writeHead(500).end()
          return
        }
        listener(request, response)
        void once(response, 'finish').then(() => resolve())
      }
    })
    await startOidcGateway(t, { issuer: provider.url, isDiscovered: false })
    await found
    t.equal(lookedAt, 2)
  })

  t.test('a login with a discovered provider redirects even if the provider is down', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    await browser.request(`${APP}/auth/oidc/login`)
    await provider.down()
    t.equal((await browser.request(`${APP}/auth/oidc/login`)).status, 303)
  })

  t.test('a callback while the provider is down shows a page, and a later sign-in works', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    const callback = await signInUpToCallback(browser, 'ada', '/floors')
    await provider.down()

    const page = await browser.request(callback)

    t.equal(page.status, 503)
    t.match(page.body, AWAY)
    t.equal(browser.cookie(APP_HOST, 'oidc_session'), undefined)
    await provider.up()
    t.equal((await signIn(browser, 'ada', '/floors')).url.href, `${APP}/floors`)
  })

  t.test('existing sessions continue while the provider is down', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    const browser = browserOf(gateway)
    await signIn(browser, 'ada')
    await provider.down()
    t.equal((await browser.request(`${APP}/api/zones`)).status, 200)
    t.match(gateway.backend.requests.at(-1)?.headers.authorization, /^Bearer ey/)
  })
})

t.test('unusable provider metadata', async (t) => {
  const METADATA: readonly (readonly [title: string, metadata: object])[] = [
    ['calls itself by another name', { issuer: 'https://evil.test' }],
    ['has no token endpoint', { token_endpoint: undefined }],
    ['has no authorization endpoint', { authorization_endpoint: undefined }]
  ]
  for (const [title, metadata] of METADATA) {
    t.test(`a provider is not used if it ${title}`, async (t) => {
      const provider = await startScriptedProvider(t)
      provider.metadata = { ...metadata }
      const gateway = await startOidcGateway(t, { issuer: provider.url, isDiscovered: false })
      t.equal((await gateway.send('/auth/oidc/login')).status, 503)
    })
  }
})

t.test('key rotation', async (t) => {
  t.test('rotated keys of the provider are used without a restart', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    for (let rotation = 0; rotation < 3; rotation += 1) {
      const { url } = await signIn(browserOf(gateway), 'ada', `/rotation/${rotation}`)
      t.equal(url.href, `${APP}/rotation/${rotation}`)
      provider.restart()
    }
  })
})

t.test('client_secret_post', async (t) => {
  t.test('a provider that supports only client_secret_post gets the secret in the body', async (t) => {
    const provider = await startScriptedProvider(t)
    provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post'] }
    const headers: (string | undefined)[] = []
    const { listener } = provider
    provider.listener = (request, response) => {
      if (request.url === '/token') headers.push(request.headers.authorization)
      listener(request, response)
    }
    const gateway = await startOidcGateway(t, { issuer: provider.url })
    await signIn(browserOf(gateway), 'ada')
    t.same(headers, [undefined])
  })
})

t.test('hostile provider', async (t) => {
  /** Sends data until the connection is closed. */
  const endless = (response: ServerResponse): { bytes: number; readonly over: Promise<unknown> } => {
    const progress = { bytes: 0, over: once(response, 'close') }
    const chunk = Buffer.alloc(64 * 1024, ' ')
    const write = (): void => {
      while (!response.destroyed && progress.bytes < 1024 * MIB) {
        progress.bytes += chunk.length
        if (!response.write(chunk)) return void response.once('drain', write)
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    write()
    return progress
  }
  const MIB = 1024 * 1024

  for (const path of ['/.well-known/openid-configuration', '/keys', '/token']) {
    t.test(`an endless response at ${path} is aborted at the size limit`, async (t) => {
      const provider = await startScriptedProvider(t)
      const { listener } = provider
      const started: ReturnType<typeof endless>[] = []
      provider.listener = (request, response) => {
        if (request.url !== path) return listener(request, response)
        started.push(endless(response))
      }
      const isDiscovered = !path.startsWith('/.well-known')
      const gateway = await startOidcGateway(t, { issuer: provider.url, isDiscovered })
      const browser = browserOf(gateway)
      const page = await signIn(browser, 'ada').catch(() => browser.request(`${APP}/auth/oidc/login`))
      t.ok(page.status >= 400)
      t.match(page.headers['content-type'], /^text\/html/)
      t.same(gateway.backend.requests, [])
      const progress = required(started.at(-1))
      await progress.over
      t.ok(progress.bytes < 16 * MIB, `${progress.bytes} bytes were taken`)
    })
  }

  t.test('redirects of the provider are not followed', async (t) => {
    const provider = await startScriptedProvider(t)
    const visited: (string | undefined)[] = []
    provider.listener = (request, response) => {
      visited.push(request.url)
      response.writeHead(302, { location: `${provider.url}/elsewhere` }).end()
    }
    const gateway = await startOidcGateway(t, { issuer: provider.url, isDiscovered: false })
    t.equal((await gateway.send('/auth/oidc/login')).status, 503)
    t.same([...new Set(visited)], ['/.well-known/openid-configuration'])
  })

  t.test('a rejected client secret is shown as a configuration error', async (t) => {
    const provider = await startProvider(t)
    const gateway = await startOidcGateway(t, { issuer: provider.url, env: { OIDC_CLIENT_SECRET: 'another' } })
    for (const challenge of [undefined, 'Basic realm="token", error="invalid_client"']) {
      const { listener } = provider
      if (challenge !== undefined)
        provider.listener = (request, response) =>
          request.url === '/token'
            ? response.writeHead(401, { 'www-authenticate': challenge }).end('{}')
            : listener(request, response)
      const page = await signIn(browserOf(gateway), 'ada')
      t.equal(page.status, 502)
      t.match(page.body, /configuration error/)
      t.match(gateway.logs.findLast(({ msg }) => msg === 'sign-in failed')?.provider, { error: 'invalid_client' })
    }
  })
})
