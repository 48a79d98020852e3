import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { build, createServer, type InlineConfig } from 'vite'
import { ROOT } from '../../../scripts/lib/root.js'
import { startBrowser } from '../../helper/browser.js'
import type { Teardown } from '../../helper/child.js'
import { freePort } from '../../helper/free-port.js'
import { PASSWORD, startExample } from './stack.js'
import { usePage } from './use-page.js'

const PAGE = join(ROOT, 'examples/page')

const VITE: InlineConfig = {
  root: PAGE,
  configFile: join(PAGE, 'vite.config.ts'),
  logLevel: 'warn',
  resolve: {
    alias: [
      { find: /^gatehouse-client$/, replacement: join(ROOT, 'dist/src/client/index.js') },
      { find: 'gatehouse-client/buildings', replacement: join(ROOT, 'dist/src/client/buildings/index.js') }
    ]
  }
}

const webRoot = await mkdtemp(join(tmpdir(), 'gatehouse-page-'))
t.teardown(() => rm(webRoot, { recursive: true, force: true }))
await build({ ...VITE, build: { outDir: webRoot, emptyOutDir: true } })
const browser = await startBrowser(t)

/** The example page on the development server, in front of a gateway. */
const startDevelopmentServer = async (t: Teardown, gatewayUrl: string): Promise<string> => {
  const port = await freePort()
  process.env.GATEWAY_URL = gatewayUrl
  const server = await createServer({ ...VITE, server: { port, strictPort: true, host: 'localhost' } })
  t.teardown(() => server.close())
  await server.listen()
  return `http://localhost:${port}`
}

for (const backend of ['node', 'python'] as const) {
  t.test(`the ${backend} backend`, async (t) => {
    const { url, backendUrl } = await startExample(t, backend, { webRoot })

    t.test(`the example page signs in, lists and moves carts of the ${backend} backend`, async (t) => {
      const page = await browser.newPage()
      const violations: string[] = []
      page.on('console', (message) => {
        if (/Content Security Policy/.test(message.text())) violations.push(message.text())
      })
      await page.goto(url)
      await usePage(page, PASSWORD)
      t.same(violations, [])
      await page.close()
    })

    t.test(`the ${backend} example rejects reads without a token, and malformed bodies`, async (t) => {
      const post = (path: string, body: string) => fetch(`${backendUrl}${path}`, { method: 'POST', body })
      t.equal((await fetch(`${url}/api/carts`)).status, 401)
      t.equal((await fetch(`${url}/api/carts`, { headers: { authorization: 'Bearer a.b.c' } })).status, 401)
      t.equal((await fetch(`${url}/api/unknown`)).status, 404)
      t.equal((await post('/api/carts', '{}')).status, 401)
      for (const body of ['{', '[]', 'null', '7', '{"email":"ada@example.com"}'])
        t.ok([400, 401].includes((await post('/api/auth/login', body)).status), body)
      t.equal((await fetch(`${url}/api/health/ready`)).status, 200, 'the backend still responds')
    })

    if (backend === 'python') return
    t.test('the example page works on the development server of Vite under production rules', async (t) => {
      const page = await browser.newPage()
      await page.goto(await startDevelopmentServer(t, url))
      await usePage(page, PASSWORD)
      await page.close()
    })
  })
}

t.test('the examples are short', async (t) => {
  const lines = (path: string): number => readFileSync(join(ROOT, 'examples', path), 'utf8').split('\n').length - 1
  t.ok(lines('quickstart/backend.js') < 40)
  t.ok(lines('quickstart/public/page.js') < 40)
  t.ok(lines('backend-node/backend.js') < 120)
  t.ok(lines('backend-python/backend.py') < 120)
  t.ok(lines('page/main.ts') < 100)
})
