/**
 * `npm run screenshots`: writes the screenshots of the demo and of the operators' page in docs/images, all or the named
 * ones. Builds, runs the demo on separate ports, and needs a Chromium from CHROMIUM_PATH or the PATH.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Browser, type BrowserContextOptions, type Cookie, chromium, type Page } from 'playwright-core'
import { commandOf, stackOf, writeRelayConfig } from '../demo/run/stack.js'
import { RunningProgram } from '../src/cli/dev/running-program.js'
import { print, runCommand, UsageError, UserError } from './lib/command.js'
import { ROOT } from './lib/root.js'
import { programOf, chromium as service, thisMachine } from './lib/services.js'

interface Screenshot {
  readonly name: string
  readonly path: string
  readonly options?: BrowserContextOptions
  /** Brings the page into the state of the screenshot. */
  readonly prepare?: (page: Page) => Promise<void>
}

const DESKTOP: BrowserContextOptions = { viewport: { width: 1440, height: 860 } }
const PHONE: BrowserContextOptions = { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true }

const updated = (page: Page): Promise<void> => page.getByText('Last update: just now').waitFor()

const personSelected = async (page: Page): Promise<void> => {
  await updated(page)
  const entries = page.getByRole('region', { name: 'People and assets' }).getByRole('button')
  await entries.first().click()
  await page.locator('.details dl').waitFor()
  await page.mouse.move(0, 0)
}

const plotted = async (page: Page): Promise<void> => {
  await page.locator('.charts polyline').nth(1).waitFor({ state: 'attached' })
  // The charts are drawn in the next frame.
  await page.waitForTimeout(500)
}

/** Not the result of a past drill. */
const drillRuns = (page: Page): Promise<void> =>
  page
    .getByRole('status')
    .filter({ hasText: /^[3-9]\d of \d+ safe$/ })
    .waitFor({ timeout: 240_000 })

const drillStarted = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Start drill' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type').selectOption({ label: 'Fire' })
  await dialog.getByLabel('Building').selectOption({ label: 'Main House' })
  await dialog.getByRole('button', { name: 'Start drill' }).click()
  await drillRuns(page)
}

const stale = (page: Page): Promise<void> => page.getByRole('status').filter({ hasText: 'Stale' }).first().waitFor()

/** The walk of docs/tutorials/demo.md. */
const SCREENSHOTS: readonly Screenshot[] = [
  { name: 'live-plan', path: '/live/f-4', prepare: personSelected },
  { name: 'live-plan-phone', path: '/live/f-2', options: PHONE, prepare: updated },
  { name: 'dashboard', path: '/dashboard', prepare: plotted },
  { name: 'dashboard-phone', path: '/dashboard', options: PHONE, prepare: plotted },
  // The drill empties the building.
  { name: 'emergency', path: '/emergency', prepare: drillStarted },
  { name: 'emergency-phone', path: '/emergency', options: PHONE, prepare: drillRuns }
]

/** With a backend that is suspended while the page is open. */
const STALE_SCREENSHOTS: readonly Screenshot[] = [
  { name: 'stale', path: '/live/f-6', prepare: stale },
  { name: 'stale-phone', path: '/live/f-6', options: PHONE, prepare: stale }
]

/** The operators' page. Both are taken together. */
const ADMIN_NAMES = ['admin', 'admin-channel'] as const
const NAMES: readonly string[] = [...[...SCREENSHOTS, ...STALE_SCREENSHOTS].map(({ name }) => name), ...ADMIN_NAMES]

type Session = readonly Cookie[]

/** One sign-in for all pages, because of the login limit. */
const signIn = async (browser: Browser, url: string, password: string): Promise<Session> => {
  const context = await browser.newContext({ baseURL: url })
  await context.request.post('/api/auth/login', { data: { email: 'admin@example.com', password } })
  const cookies = await context.cookies()
  await context.close()
  return cookies
}

const take = async (
  browser: Browser,
  url: string,
  session: Session,
  { name, path, options, prepare }: Screenshot,
  whenOpen: () => void = () => undefined
): Promise<void> => {
  const context = await browser.newContext({ baseURL: url, ...DESKTOP, ...options })
  await context.addCookies(session)
  const page = await context.newPage()
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  whenOpen()
  await prepare?.(page)
  await save(page, name)
  await context.close()
}

const save = async (page: Page, name: string): Promise<void> => {
  await page.screenshot({ path: join(ROOT, 'docs/images', `${name}.png`) })
  print(`docs/images/${name}.png`)
}

const takeAdminPages = async (browser: Browser, url: string, password: string): Promise<void> => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 960 } })
  await page.goto(url)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('img', { name: /^Connections over the last 15 minutes: now \d/ }).waitFor()
  await save(page, 'admin')
  await page.goto(`${url}#/channel?name=floor:f-1`)
  await page
    .getByRole('button', { name: /position-batch/ })
    .first()
    .click()
  await page.getByRole('searchbox', { name: 'Search in Data of the publication' }).fill('accuracy')
  await page.getByText(/^1 of \d+$/).waitFor()
  await save(page, 'admin-channel')
}

const FLOORS = ['f-1', 'f-2', 'f-3', 'f-4', 'f-1', 'f-2']
const PAUSE_MS = 40_000

/** Opens one live plan after the other, so that the admin charts have a history. */
const openLivePlans = async (browser: Browser, url: string, session: Session): Promise<void> => {
  for (const floor of FLOORS) {
    const context = await browser.newContext({ baseURL: url, reducedMotion: 'reduce' })
    await context.addCookies(session)
    const page = await context.newPage()
    await page.goto(`/live/${floor}`)
    await page.waitForTimeout(PAUSE_MS)
  }
}

const main = async (args: readonly string[]): Promise<number> => {
  const { positionals } = parseArgs({ args: [...args], options: {}, allowPositionals: true })
  const unknown = positionals.filter((name) => !NAMES.includes(name))
  if (unknown.length > 0) throw new UsageError(`there is no screenshot ${unknown.join(', ')}`)
  const isWanted = (name: string): boolean => positionals.length === 0 || positionals.includes(name)
  const env: NodeJS.ProcessEnv = {
    GATEWAY_PORT: '13000',
    RELAY_PORT: '18100',
    DEMO_BACKEND_PORT: '14000',
    ...process.env
  }
  const executablePath = env.CHROMIUM_PATH || programOf(service, thisMachine(env))
  if (executablePath === undefined) throw new UserError('No Chromium: set CHROMIUM_PATH, or put chromium on the PATH')
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-'))
  const stack = stackOf(env, { root: ROOT, folder })
  const { programs, pageUrl, demoPassword, adminUrl, adminPassword } = stack
  await writeRelayConfig(stack)
  const running = programs.map((program) => new RunningProgram(commandOf(program, env), () => undefined))
  try {
    await Promise.all(running.map((program) => program.ready()))
    await mkdir(join(ROOT, 'docs/images'), { recursive: true })
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    try {
      const session = await signIn(browser, pageUrl, demoPassword)
      for (const screenshot of SCREENSHOTS.filter(({ name }) => isWanted(name)))
        await take(browser, pageUrl, session, screenshot)
      const backend = running.find(({ program }) => program.name === 'backend')?.pid ?? 0
      for (const screenshot of STALE_SCREENSHOTS.filter(({ name }) => isWanted(name))) {
        await take(browser, pageUrl, session, screenshot, () => process.kill(backend, 'SIGSTOP'))
        process.kill(backend, 'SIGCONT')
      }
      if (ADMIN_NAMES.some(isWanted)) {
        await openLivePlans(browser, pageUrl, session)
        await takeAdminPages(browser, adminUrl, adminPassword)
      }
    } finally {
      await browser.close()
    }
  } finally {
    await Promise.all(running.map((program) => program.stop()))
    await rm(folder, { recursive: true })
  }
  return 0
}

await runCommand(
  `Usage: npm run screenshots [-- <name> …]\n\nNames: ${NAMES.join(', ')}. Both pages of the operators are taken together.`,
  main
)
