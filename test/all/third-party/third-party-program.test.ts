import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { startOidcGateway, startProvider } from '../../gateway/oidc/fixture.js'
import { portOf } from '../../helper/address.js'
import { PATIENCE_MS, startBrowser } from '../../helper/browser.js'
import { freePort } from '../../helper/free-port.js'

const PAGE = `<!doctype html><title>Tool</title><p id="user"></p><p id="count"></p><button>Count</button>
<script type="module" src="page.js"></script>`
const SCRIPT = `
const socket = new WebSocket(new URL('socket', location.href.replace('http', 'ws')))
socket.onmessage = ({ data }) => {
  const { user, count } = JSON.parse(data)
  document.querySelector('#user').textContent = 'Signed in as ' + user
  document.querySelector('#count').textContent = 'Counted to ' + count
}
document.querySelector('button').onclick = () => socket.send('count')`

/** Pages over HTTP, and everything that they show and send over a WebSocket. It knows nothing of the gateway. */
const startTool = async (): Promise<string> => {
  const server = createServer(({ url }, response) => {
    const isScript = url === '/tool/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html').end(isScript ? SCRIPT : PAGE)
  })
  const sockets = new WebSocketServer({ server, path: '/tool/socket' })
  sockets.on('connection', (socket, { headers }) => {
    let count = 0
    const show = (): void => socket.send(JSON.stringify({ user: headers['x-auth-user'] ?? 'nobody', count }))
    show()
    socket.on('message', () => {
      count += 1
      show()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${portOf(server)}`
}

t.test('a program of another team runs behind the gateway with single sign-on, its WebSocket included', async (t) => {
  const program = await startTool()
  const port = await freePort()
  const address = `http://localhost:${port}`
  const provider = await startProvider(t, { client: { redirect_uris: [`${address}/auth/oidc/callback`] } })
  const rows = [
    {
      name: 'tool',
      url: program,
      paths: ['/tool'],
      strict_paths: ['/tool'],
      websocket: true,
      token: 'none',
      identity_headers: { user: 'X-Auth-User' }
    }
  ]
  const file = join(t.testdir(), 'rows.json')
  writeFileSync(file, JSON.stringify(rows))
  const env = { PUBLIC_URL: address, GATEWAY_PORT: String(port), GATEWAY_UPSTREAMS: file }
  const gateway = await startOidcGateway(t, { issuer: provider.url, env })
  t.equal((await gateway.send('/tool/')).status, 401)

  const page = await (await startBrowser(t)).newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(`${address}/auth/oidc/login?returnTo=/tool/`)
  await page.locator('button[value=ada]').click()
  await page.waitForURL(`${address}/tool/`)
  await page.getByText('Signed in as operator-1').waitFor()
  await page.getByText('Counted to 0').waitFor()
  await page.getByRole('button', { name: 'Count' }).click()
  await page.getByText('Counted to 1').waitFor()
  t.match((await gateway.send('/metrics')).body, 'gateway_websockets{upstream="tool"} 1')
})
