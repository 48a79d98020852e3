import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { preparePythonEnvironment } from '../../scripts/lib/python-environment.js'
import { thisMachine } from '../../scripts/lib/services.js'
import { startOidcGateway, startProvider } from '../gateway/oidc/fixture.js'
import { PATIENCE_MS, startBrowser } from '../helper/browser.js'
import { startChild } from '../helper/child.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'

const PROGRAM = `
import streamlit as st
st.write("Signed in as " + st.context.headers.get("X-Auth-User", "nobody"))
if "count" not in st.session_state:
    st.session_state.count = 0
if st.button("Count"):
    st.session_state.count += 1
st.write(f"Counted to {st.session_state.count}")
`

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-program-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

/** Streamlit: pages over HTTP, and everything that they show and send over a WebSocket. */
const startProgram = async (): Promise<string> => {
  const bin = await preparePythonEnvironment(
    'streamlit',
    ['streamlit==1.67.0'],
    thisMachine(environment.all),
    t.comment
  )
  const port = await freePort()
  const args = ['run', file('program.py', PROGRAM), '--server.headless', 'true', '--server.baseUrlPath', 'tool']
  const listen = ['--server.address', '127.0.0.1', '--server.port', String(port)]
  await startChild(t, join(bin, 'streamlit'), [...args, ...listen], { HOME: folder, PATH: environment.path })
  const url = `http://127.0.0.1:${port}`
  await eventually(() =>
    fetch(`${url}/tool/_stcore/health`).then(
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
