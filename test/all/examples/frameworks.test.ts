import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { build, createServer } from 'vite'
import { ROOT } from '../../../scripts/lib/root.js'
import { startBrowser } from '../../helper/browser.js'
import { eventually } from '../../helper/eventually.js'
import { freePort } from '../../helper/free-port.js'
import { openWindow } from '../../helper/window.js'
import { withReact18 } from './react-18.js'
import { PASSWORD, startExample } from './stack.js'

const CLIENT = join(ROOT, 'dist/src/client')
const INSTALLED = [
  { find: /^gatehouse-client$/, replacement: `${CLIENT}/index.js` },
  { find: /^gatehouse-client\/(react|vue)$/, replacement: `${CLIENT}/$1/index.js` }
]

// One gateway, one relay and one browser for all.
const webRoot = await mkdtemp(join(tmpdir(), 'gatehouse-frameworks-'))
t.teardown(() => rm(webRoot, { recursive: true, force: true }))

const EXAMPLES = [
  { name: 'React 19', folder: 'react', path: 'react', aliases: async () => INSTALLED },
  { name: 'React 18', folder: 'react', path: 'react-18', aliases: async () => [...INSTALLED, await withReact18()] },
  { name: 'Vue', folder: 'vue', path: 'vue', aliases: async () => INSTALLED }
] as const

for (const { folder, path, aliases } of EXAMPLES) {
  const root = join(ROOT, 'examples', folder)
  await build({
    root,
    configFile: join(root, 'vite.config.ts'),
    base: `/${path}/`,
    // Rollup warns about the directive "use client", which is for servers that render components.
    logLevel: 'error',
    resolve: { alias: await aliases() },
    build: { outDir: join(webRoot, path), emptyOutDir: true }
  })
}
await writeFile(join(webRoot, 'index.html'), '<!doctype html>')
const { url, backendUrl } = await startExample(t, webRoot)
const browser = await startBrowser(t)

const signIn = async (page: Page, email: string, password: string): Promise<void> => {
  await page.fill('[name=email]', email)
  await page.fill('[name=password]', password)
  await page.click('button[type=submit]')
}

const watchers = (page: Page, names: string): Promise<unknown> =>
  page.waitForSelector(`#watchers:text-is("Watching: ${names}")`)

const packed = async (page: Page): Promise<number> => Number(await page.textContent('output'))

for (const [index, { name, path }] of EXAMPLES.entries()) {
  t.test(`the example for ${name} signs in, lists orders, counts live and shows who watches`, async (t) => {
    const expected = /401/
    const { page, pageErrors } = await openWindow(t, browser, url, { expected })
    await page.goto(`/${path}/index.html`)
    await signIn(page, 'ada@example.com', 'wrong')
    await page.waitForSelector('[role=alert]:has-text("password is wrong")')
    await signIn(page, 'ada@example.com', PASSWORD)
    await page.waitForSelector('li:has-text("Tea")')
    await watchers(page, 'Ada')
    await eventually(async () => (await packed(page)) > 0)
    const before = await packed(page)
    await eventually(async () => (await packed(page)) > before)

    // Bob uses the example of the next framework.
    const other = await openWindow(t, browser, url)
    await other.page.goto(`/${EXAMPLES[(index + 1) % EXAMPLES.length]?.path}/index.html`)
    await signIn(other.page, 'bob@example.com', PASSWORD)
    await watchers(other.page, 'Ada, Bob')
    await watchers(page, 'Ada, Bob')
    await other.page.click('text=Watch 43')
    await watchers(other.page, 'Bob')
    await watchers(page, 'Ada')

    await page.click('text=Sign out')
    await page.waitForSelector('h1:has-text("Sign in")')
    t.same([...pageErrors, ...other.pageErrors], [])
  })
}

t.test('the example for Vue works on the development server of Vite under production rules', async (t) => {
  const root = join(ROOT, 'examples/vue')
  const port = await freePort()
  process.env.GATEWAY_URL = url
  const server = await createServer({
    root,
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'warn',
    resolve: { alias: INSTALLED },
    server: { port, strictPort: true, host: 'localhost' }
  })
  t.teardown(() => server.close())
  await server.listen()
  const { page, pageErrors } = await openWindow(t, browser, `http://localhost:${port}`, { expected: /401/ })
  await page.goto('/')
  await signIn(page, 'ada@example.com', PASSWORD)
  await eventually(async () => (await packed(page)) > 0)
  t.same(pageErrors, [])
})

t.test('the backend of the examples rejects reads without a token, and malformed bodies', async (t) => {
  t.equal((await fetch(`${url}/api/orders`, { headers: { authorization: 'Bearer a.b.c' } })).status, 401)
  const post = (path: string, body: string) => fetch(`${backendUrl}${path}`, { method: 'POST', body })
  t.equal((await post('/api/orders', '{}')).status, 401)
  for (const body of ['{', '[]', 'null', '7', '{"email":"ada@example.com"}'])
    t.ok([400, 401].includes((await post('/api/auth/login', body)).status), body)
})

t.test('the examples of the quickstart are short', async (t) => {
  for (const file of ['backend.js', 'public/page.js'])
    t.ok(readFileSync(join(ROOT, 'examples/quickstart', file), 'utf8').split('\n').length <= 45, file)
})
