import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { load } from 'js-yaml'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { backendWith, startOidcGateway, startProvider } from '../../gateway/oidc/fixture.js'
import { TestBrowser } from '../../gateway/oidc/test-browser.js'
import { freePort } from '../../helper/free-port.js'
import { memberAt } from '../../helper/member-at.js'
import { startBackend } from '../../helper/recording-backend.js'
import { changed, shipped } from './shipped.js'
import { startTool } from './tool.js'

const HOST = 'app.example.com'
const APP = `http://${HOST}`

interface Addresses {
  readonly port: number
  readonly gateway: string
  readonly reports: string
}

/** Stock nginx with the shipped file, in a server as that of gatehouse.conf. */
const startNginx = async (t: Test, { port, gateway, reports }: Addresses): Promise<void> => {
  const folder = t.testdir()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`
  )
  const snippet = changed(shipped('deploy/nginx/snippets/gatehouse-forward-auth.conf'), [['127.0.0.1:3001', reports]])
  // The maps of gatehouse.conf.
  const [, maps = ''] =
    /(map \$http_upgrade .*?\n\}\nmap .*?\n\}\n)/s.exec(shipped('deploy/nginx/gatehouse.conf')) ?? []
  await writeFile(join(folder, 'gatehouse-forward-auth.conf'), snippet)
  await writeFile(
    join(folder, 'nginx.conf'),
    `pid ${folder}/nginx.pid;
events {}
http {
  access_log off;
  ${temporary.join('\n  ')}
  ${maps}
  upstream gatehouse_gateway { server ${gateway}; }
  server {
    listen 127.0.0.1:${port};
    server_name ${HOST};
    proxy_set_header Host $http_host;
    include ${folder}/gatehouse-forward-auth.conf;
    location / { proxy_pass http://gatehouse_gateway; }
  }
}
`
  )
  const nginx = await startTool(t, 'nginx', [
    '-c',
    join(folder, 'nginx.conf'),
    '-e',
    'stderr',
    '-g',
    'daemon off; error_log stderr notice;'
  ])
  t.teardown(async () => {
    nginx.signal('SIGTERM')
    await nginx.exited
  })
  await nginx.waitForLine('start worker process ')
}

/** Stock Caddy with the shipped file. */
const startCaddy = async (t: Test, { port, gateway, reports }: Addresses): Promise<void> => {
  const folder = t.testdir()
  const snippet = changed(shipped('deploy/caddy/forward-auth.caddy'), [
    ['127.0.0.1:3000', gateway],
    ['127.0.0.1:3001', reports]
  ])
  await writeFile(join(folder, 'forward-auth.caddy'), snippet)
  await writeFile(
    join(folder, 'Caddyfile'),
    `{
	admin off
	auto_https off
	default_bind 127.0.0.1
}
http://${HOST}:${port} {
	import forward-auth.caddy
	reverse_proxy ${gateway}
}
`
  )
  const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const caddy = await startTool(t, 'caddy', ['run', '--config', join(folder, 'Caddyfile')], env)
  await caddy.waitForLine('serving initial configuration')
}

for (const [name, startProxy] of Object.entries({ nginx: startNginx, Caddy: startCaddy })) {
  t.test(`${name} with forward authentication`, async (t) => {
    const provider = await startProvider(t, {
      client: { redirect_uris: [`${APP}/auth/oidc/callback`], post_logout_redirect_uris: [`${APP}/`] }
    })
    const gateway = await startOidcGateway(t, {
      issuer: provider.url,
      env: { PUBLIC_URL: APP, GATEWAY_FORWARD_AUTH: 'true', TRUST_PROXY: 'loopback' }
    })
    gateway.backend.respond = backendWith(['ada@example.com'])
    const reports = await startBackend(t)
    reports.respond = (_request, response) => response.setHeader('content-type', 'text/html').end('<h1>Reports</h1>')
    const port = await freePort()
    await startProxy(t, { port, gateway: new URL(gateway.url).host, reports: new URL(reports.url).host })
    const newBrowser = () => new TestBrowser([[HOST, `http://127.0.0.1:${port}`]])
    const PAGE = { headers: { accept: 'text/html', 'sec-fetch-dest': 'document' } }
    t.beforeEach(() => {
      reports.requests.length = 0
    })

    t.test(
      `${name} leads a visitor through the sign-in back to the page, and names the user to the application`,
      async (t) => {
        const browser = newBrowser()
        const choose = await browser.visit(`${APP}/reports/list?a=1&b=%2F`, PAGE)
        t.equal(choose.url.origin, provider.url, 'the visitor is at the provider')
        t.same(reports.requests, [], 'the application received nothing')

        const landed = await browser.submit(choose.url, { account: 'ada' })

        t.equal(landed.url.href, `${APP}/reports/list?a=1&b=%2F`)
        t.equal(landed.body, '<h1>Reports</h1>')
        t.match(reports.requests.at(-1), {
          method: 'GET',
          url: '/reports/list?a=1&b=%2F',
          headers: { 'x-auth-user': 'operator-1', 'x-auth-email': 'operator@example.com', 'x-auth-role': 'operator' }
        })

        await browser.request(`${APP}/reports/save`, { method: 'POST', body: 'some text' })
        t.match(reports.requests.at(-1), {
          method: 'POST',
          body: 'some text',
          headers: { 'x-auth-user': 'operator-1' }
        })

        await browser.request(`${APP}/auth/oidc/logout`)
        t.equal((await browser.request(`${APP}/reports/list`, PAGE)).status, 302)
      }
    )

    t.test(`${name} removes identity headers that a client invents`, async (t) => {
      const browser = newBrowser()
      const choose = await browser.visit(`${APP}/reports/`, PAGE)
      await browser.submit(choose.url, { account: 'ada' })
      reports.requests.length = 0
      const forged = ['X-Auth-User', 'x-auth-role', 'X-AUTH-EMAIL', 'X-Auth-Permissions', 'X_Auth_User', 'X-Auth_Role']
      await browser.request(`${APP}/reports/`, {
        headers: { ...PAGE.headers, ...Object.fromEntries(forged.map((header) => [header, 'forged'])) }
      })
      t.equal(reports.requests.length, 1)
      const received = reports.requests[0]?.headers ?? {}
      t.notMatch(JSON.stringify(received), 'forged')
      t.equal(received['x-auth-user'], 'operator-1')

      // Proxies remove headers that a client declares as those of the connection.
      await browser.request(`${APP}/reports/`, { headers: { ...PAGE.headers, connection: 'close, X-Auth-User' } })
      t.equal(reports.requests.at(-1)?.headers['x-auth-user'], 'operator-1')
    })

    t.test(`${name} passes a WebSocket of a signed-in user on, and no other`, async (t) => {
      const browser = newBrowser()
      const choose = await browser.visit(`${APP}/reports/`, PAGE)
      await browser.submit(choose.url, { account: 'ada' })
      const sockets = new WebSocketServer({ server: reports.server })
      t.teardown(() => sockets.close())
      const open = (cookie: string): Promise<string> =>
        new Promise((resolve) => {
          const socket = new WebSocket(`ws://127.0.0.1:${port}/reports/live`, { headers: { host: HOST, cookie } })
          socket.on('unexpected-response', (_request, { statusCode }) => resolve(String(statusCode)))
          socket.on('message', (text) => {
            resolve(String(text))
            socket.close()
          })
        })
      sockets.on('connection', (socket, { headers }) => socket.send(String(headers['x-auth-user'])))
      t.equal(await open(browser.cookieHeader(new URL(`${APP}/reports/`))), 'operator-1')
      t.equal(await open('auth_token=x'), '401')
    })

    const REJECTED = [
      ['a call of a script', { headers: { accept: 'application/json', 'sec-fetch-dest': 'empty' } }],
      ['a form', { ...PAGE, method: 'POST', body: 'x' }],
      ['a forged token', { headers: { cookie: 'auth_token=eyJhbGciOiJub25lIn0.e30.' } }],
      ['headers of another proxy', { headers: { 'x-forwarded-for': '127.0.0.1', 'x-auth-user': 'admin' } }]
    ] as const
    for (const [title, message] of REJECTED) {
      t.test(`${name} rejects ${title} with 401`, async (t) => {
        t.equal((await newBrowser().request(`${APP}/reports/`, message)).status, 401)
        t.same(reports.requests, [])
      })
    }

    t.test(`${name} ignores addresses that a client invents`, async (t) => {
      const response = await newBrowser().request(`${APP}/reports/`, {
        headers: {
          ...PAGE.headers,
          'x-forwarded-uri': '//evil.test/',
          'x-forwarded-host': 'evil.test',
          'x-forwarded-method': 'POST',
          'x-sign-in-at': 'https://evil.test/'
        }
      })
      t.equal(response.status, 302)
      t.match(
        response.headers.location,
        /^(?:http:\/\/app\.example\.com(?::\d+)?)?\/auth\/oidc\/login\?returnTo=%2Freports%2F$/
      )
    })

    t.test(`${name} does not pass requests of browsers to /auth/verify`, async (t) => {
      for (const path of ['/auth/verify', '/gatehouse-verify']) {
        const { status, headers } = await newBrowser().request(`${APP}${path}`, PAGE)
        t.equal(status, 404, path)
        t.equal(headers['x-sign-in-at'], undefined)
      }
    })

    t.test(`${name} rejects all requests while the gateway is down`, async (t) => {
      gateway.gateway.app.server.closeAllConnections()
      await gateway.gateway.app.close()
      const { status } = await newBrowser().request(`${APP}/reports/`, PAGE)
      t.ok(status >= 500, String(status))
      t.same(reports.requests, [])
    })
  })
}

t.test('the file for Traefik asks the gateway and copies the identity headers', async (t) => {
  const file = load(shipped('deploy/traefik/forward-auth.yml'))
  t.match(memberAt(file, ['http', 'middlewares', 'gatehouse-auth', 'forwardAuth']), {
    address: 'http://127.0.0.1:3000/auth/verify?redirect=1',
    trustForwardHeader: false,
    authResponseHeaders: ['X-Auth-User', 'X-Auth-Email', 'X-Auth-Role', 'X-Auth-Permissions']
  })
  const { middlewares, services, routers } = Object(memberAt(file, ['http']))
  for (const [name, router] of Object.entries<{ middlewares?: string[]; service: string }>(routers)) {
    t.ok(router.service in services, `${name} has a service`)
    for (const middleware of router.middlewares ?? []) t.ok(middleware in middlewares, `${name} has ${middleware}`)
  }
  t.same(routers.reports.middlewares, ['client-headers', 'gatehouse-auth'], 'headers of the client are removed first')
})
