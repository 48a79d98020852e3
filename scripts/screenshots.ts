/**
 * `npm run screenshots`: pictures of the demo's pages and of the relay's operators' page for docs/images. Runs what was
 * built, on ports of its own, and looks at it with the Chromium that CHROMIUM_PATH names or the PATH has.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, type Cookie, chromium, type Page } from 'playwright-core'
import { RunningProgram } from './demo/running-program.js'
import { stackOf } from './demo/stack.js'
import { ROOT } from './root.js'
import { programOf, chromium as service, thisMachine } from './services.js'

interface Picture {
  readonly name: string
  readonly path: string
  readonly options?: BrowserContextOptions
  /** What has to happen before it is taken. */
  readonly prepare?: (page: Page) => Promise<void>
}

const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 760 } }
const DARK: BrowserContextOptions = { colorScheme: 'dark' }
const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true }

const updated = (page: Page): Promise<void> => page.getByText('Last update: just now').waitFor()

const somebodySelected = async (page: Page): Promise<void> => {
  await updated(page)
  await page.getByRole('region', { name: 'Who is where' }).getByRole('button').nth(1).click()
}

const drillStarted = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Raise an alarm' }).click()
  await page.getByRole('button', { name: 'Start the drill' }).click()
  await page.getByText(/^[3-9]\d of \d+ safe$/).waitFor({ timeout: 120_000 })
}

const PICTURES: readonly Picture[] = [
  { name: 'live-plan', path: '/live/f-1', prepare: somebodySelected },
  { name: 'live-plan-dark', path: '/live/f-4', options: DARK, prepare: somebodySelected },
  { name: 'dashboard', path: '/dashboard' },
  { name: 'personnel', path: '/personnel', options: DARK },
  { name: 'live-plan-phone', path: '/live/f-2', options: PHONE, prepare: updated },
  // The last one, because everybody else leaves the building for it.
  { name: 'emergency', path: '/emergency', prepare: drillStarted }
]

/** Signed in once: the gateway counts attempts. */
let session: Cookie[] = []

const take = async (browser: Browser, url: string, password: string, picture: Picture): Promise<void> => {
  const { name, path, options, prepare } = picture
  const context = await browser.newContext({ baseURL: url, ...DESKTOP, ...options })
  await context.addCookies(session)
  const page = await context.newPage()
  if (session.length === 0) {
    await context.request.post('/api/auth/login', { data: { email: 'admin@example.com', password } })
    session = await context.cookies()
  }
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  await prepare?.(page)
  await keep(page, name)
  await context.close()
}

const keep = async (page: Page, name: string): Promise<void> => {
  await page.screenshot({ path: join(ROOT, 'docs/images', `${name}.png`) })
  console.log(`docs/images/${name}.png`)
}

/** The relay gathers figures while somebody looks: opened first and kept last, it has something to draw. */
const openOperatorsPage = async (browser: Browser, url: string, password: string): Promise<Page> => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 960 } })
  await page.goto(url)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

const VISITORS = ['f-1', 'f-2', 'f-3', 'f-4', 'f-1', 'f-2']
const BETWEEN_VISITORS_MS = 40_000

/** People who come one after the other and stay, so that the figures have a past. */
const comeOneByOne = async (browser: Browser, url: string): Promise<void> => {
  for (const floor of VISITORS) {
    const context = await browser.newContext({ baseURL: url, reducedMotion: 'reduce' })
    await context.addCookies(session)
    const page = await context.newPage()
    await page.goto(`/live/${floor}`)
    await page.waitForTimeout(BETWEEN_VISITORS_MS)
  }
}

const env: NodeJS.ProcessEnv = {
  GATEWAY_PORT: '13000',
  RELAY_PORT: '18100',
  DEMO_BACKEND_PORT: '14000',
  ...process.env
}
const executablePath = env.CHROMIUM_PATH || programOf(service, thisMachine(env))
if (executablePath === undefined) throw new Error('no Chromium: set CHROMIUM_PATH, or put chromium on the PATH')
const { programs, pageUrl, demoPassword, adminUrl, adminPassword } = stackOf(env)
const running = programs.map((program) => new RunningProgram(program, env, () => undefined))
try {
  await Promise.all(running.map((program) => program.ready()))
  await mkdir(join(ROOT, 'docs/images'), { recursive: true })
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const operators = await openOperatorsPage(browser, adminUrl, adminPassword)
    for (const picture of PICTURES) await take(browser, pageUrl, demoPassword, picture)
    await comeOneByOne(browser, pageUrl)
    await keep(operators, 'admin')
  } finally {
    await browser.close()
  }
} finally {
  await Promise.all(running.map((program) => program.stop()))
}
