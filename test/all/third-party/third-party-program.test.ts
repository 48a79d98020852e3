import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { preparePythonEnvironment } from '../../../scripts/lib/python-environment.js'
import { thisMachine } from '../../../scripts/lib/services.js'
import { startOidcGateway, startProvider } from '../../gateway/oidc/fixture.js'
import { PATIENCE_MS, startBrowser } from '../../helper/browser.js'
import { startChild } from '../../helper/child.js'
import { environment } from '../../helper/environment.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'

const PROGRAM = `
import sys
import tornado.ioloop
import tornado.web
from pywebio import STATIC_PATH
from pywebio.input import actions
from pywebio.output import put_text
from pywebio.platform.tornado import webio_handler
from pywebio.session import info

def page():
    put_text("Signed in as " + info.request.headers.get("X-Auth-User", "nobody"))
    for count in range(10):
        put_text(f"Counted to {count}")
        actions(buttons=["Count"])

tornado.web.Application([
    ("/tool/", webio_handler(page, cdn=False)),
    ("/tool/(.*)", tornado.web.StaticFileHandler, {"path": STATIC_PATH}),
]).listen(int(sys.argv[1]), "127.0.0.1")
tornado.ioloop.IOLoop.current().start()
`

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-program-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

/** PyWebIO: pages over HTTP, and everything that they show and send over a WebSocket. */
const startProgram = async (): Promise<string> => {
  const machine = thisMachine(environment.all)
  const requirements = ['pywebio==1.8.4', 'tornado==6.6.1', 'user-agents==2.2.0']
  const bin = await preparePythonEnvironment('pywebio', requirements, machine, t.comment)
  const port = await freePort()
  await startChild(t, join(bin, 'python'), [file('program.py', PROGRAM), String(port)], { PATH: environment.path })
  const url = `http://127.0.0.1:${port}`
  await eventually(() =>
    fetch(`${url}/tool/`).then(
      ({ ok }) => ok,
      () => false
    )
  )
  return url
}

t.test('a program from a registry runs behind the gateway with single sign-on, its WebSocket included', async (t) => {
  const program = await startProgram()
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
  const env = {
    PUBLIC_URL: address,
    GATEWAY_PORT: String(port),
    GATEWAY_UPSTREAMS: file('rows.json', JSON.stringify(rows))
  }
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
