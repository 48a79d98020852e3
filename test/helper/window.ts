import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { PATIENCE_MS } from './browser.js'
import type { Teardown } from './child.js'

export interface BrowserWindow {
  readonly context: BrowserContext
  readonly page: Page
  /** Console errors, uncaught errors and CSP violations. */
  readonly pageErrors: string[]
  /** Accessibility violations that axe finds, one line each. */
  findings(): Promise<readonly string[]>
}

export interface WindowOptions extends BrowserContextOptions {
  /** Expected messages, such as the browser's error for a rejected request. */
  readonly expected?: RegExp | undefined
}

/** A warning of the browser about a page that was still connecting to the relay when it was left or the session ended. */
const STILL_CONNECTING = /WebSocket is closed before the connection is established/

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let addresses = 0

/** Opens a browser window with its own cookies and client address. */
export const openWindow = async (
  t: Teardown,
  browser: Browser,
  url: string,
  { expected, ...options }: WindowOptions = {}
): Promise<BrowserWindow> => {
  const context = await newContext(browser, url, options)
  t.teardown(() => context.close())
  return openTab(context, expected)
}

/** Cookies, storage and client address of their own. */
export const newContext = async (
  browser: Browser,
  url: string,
  options: BrowserContextOptions
): Promise<BrowserContext> => {
  addresses += 1
  const context = await browser.newContext({
    baseURL: url,
    extraHTTPHeaders: { 'x-forwarded-for': `192.0.2.${addresses}` },
    // Markers that glide are drawn in every frame.
    reducedMotion: 'reduce',
    ...options
  })
  context.setDefaultTimeout(PATIENCE_MS)
  return context
}

/** Opens a page in a context and collects its errors. */
export const openTab = async (context: BrowserContext, expected?: RegExp): Promise<BrowserWindow> => {
  const pageErrors: string[] = []
  const report = (text: string): void => {
    if (!expected?.test(text) && !STILL_CONNECTING.test(text)) pageErrors.push(text)
  }
  const page = await context.newPage()
  await page.exposeFunction('reportViolation', (text: string) => report(`policy: ${text}`))
  await page.addInitScript(`addEventListener('securitypolicyviolation', (event) =>
    reportViolation(event.violatedDirective + ' ' + event.blockedURI))`)
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') report(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => report(`uncaught: ${error.message}`))
  return {
    context,
    page,
    pageErrors,
    findings: async () => {
      if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE)
      const options = JSON.stringify({
        resultTypes: ['violations'],
        rules: { 'target-size': { enabled: true } }
      })
      const { violations } = await page.evaluate<{ violations: readonly Violation[] }>(`axe.run(${options})`)
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    }
  }
}

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}
