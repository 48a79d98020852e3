import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'
import { PATIENCE_MS } from './browser.js'
import { DEMO_PASSWORD, type DemoStack } from './demo-stack.js'

export type Role = 'admin' | 'operator' | 'viewer'

export interface DemoPage {
  readonly page: Page
  /** What the browser complained about: console errors, uncaught errors, violations of the policy. */
  readonly complaints: string[]
  /** What is wrong for people who do not see, or not well; one line for each serious finding. Of these rules, or of all. */
  findings(rules?: readonly string[]): Promise<readonly string[]>
}

export interface DemoPageOptions extends BrowserContextOptions {
  /** Signed in already. */
  readonly as?: Role
  /** Complaints that belong to the test: a refused request is one for a browser. */
  readonly expected?: RegExp
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let addresses = 0

/** A browser window of its own, with its own cookies and its own address. */
export const openDemoPage = async (
  t: Test,
  browser: Browser,
  { url }: DemoStack,
  { as, expected, ...options }: DemoPageOptions = {}
): Promise<DemoPage> => {
  addresses += 1
  const context = await browser.newContext({
    baseURL: url,
    extraHTTPHeaders: { 'x-forwarded-for': `192.0.2.${addresses}` },
    ...options
  })
  context.setDefaultTimeout(PATIENCE_MS)
  t.teardown(() => context.close())
  const complaints: string[] = []
  const complain = (text: string): void => {
    if (!expected?.test(text)) complaints.push(text)
  }
  await context.exposeFunction('reportViolation', (text: string) => complain(`policy: ${text}`))
  await context.addInitScript(`addEventListener('securitypolicyviolation', (event) =>
    reportViolation(event.violatedDirective + ' ' + event.blockedURI))`)
  const page = await context.newPage()
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complain(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complain(`uncaught: ${error.message}`))

  if (as) {
    const credentials = { email: `${as}@example.com`, password: DEMO_PASSWORD }
    const answer = await context.request.post('/api/auth/login', { data: credentials })
    if (!answer.ok()) throw new Error(`signing in as ${as} was answered with ${answer.status()}`)
  }
  return {
    page,
    complaints,
    findings: async (rules) => {
      await page.evaluate(AXE)
      const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })
      const { violations } = (await page.evaluate(`axe.run(${options})`)) as { violations: readonly Violation[] }
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    }
  }
}

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}

/** A small picture that is read as one, and this many bytes long. */
export const pngOf = (bytes: number): Buffer => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkaPj/HwAEgQJ/zPcGFQAAAABJRU5ErkJggg=='
  return Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.alloc(bytes)])
}
