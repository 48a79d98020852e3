import type { Browser, BrowserContext } from 'playwright-core'
import type { Test } from 'tap'
import { type BrowserWindow, newContext, openTab, type WindowOptions } from '../../../test/helper/window.js'
import { DEMO_PASSWORD, type DemoStack } from './demo-stack.js'

export type Role = 'admin' | 'operator' | 'viewer'

export type DemoPage = BrowserWindow

export interface DemoPageOptions extends WindowOptions {
  /** Signs in first. */
  readonly as?: Role
  /** With a session that no other test uses, for a test that replaces the clock of its pages. */
  readonly isSeparate?: boolean
}

/** A context with a session. */
interface Session {
  readonly context: BrowserContext
  readonly token: string | undefined
}

/** By their options: sessions that no test uses at present. */
const idle = new Map<string, Session[]>()

/**
 * Opens a page of the demo. The session of a signed-in page may be one that an earlier test has used: signing in and loading
 * the scripts into a new context takes twice the CPU time of loading a page. The storage of the page is empty in any case.
 */
export const openDemoPage = async (
  t: Test,
  browser: Browser,
  { url }: DemoStack,
  { isSeparate = false, expected, ...options }: DemoPageOptions = {}
): Promise<DemoPage> => {
  const key = JSON.stringify([url, options])
  const unused = idle.get(key) ?? []
  idle.set(key, unused)
  const session = (isSeparate ? undefined : unused.pop()) ?? (await startSession(browser, url, options))
  t.teardown(async () => {
    if (!isSeparate && (await leave(session))) unused.push(session)
    else await session.context.close()
  })
  const opened = await openTab(session.context, expected)
  const devtools = await session.context.newCDPSession(opened.page)
  await devtools.send('Storage.clearDataForOrigin', { origin: new URL(url).origin, storageTypes: 'local_storage' })
  await devtools.detach()
  return opened
}

const startSession = async (browser: Browser, url: string, { as, ...options }: DemoPageOptions): Promise<Session> => {
  const context = await newContext(browser, url, options)
  if (as) {
    const credentials = { email: `${as}@example.com`, password: DEMO_PASSWORD }
    const response = await context.request.post('/api/auth/login', { data: credentials })
    if (!response.ok()) throw new Error(`signing in as ${as} failed with ${response.status()}`)
  }
  return { context, token: await tokenOf(context) }
}

const tokenOf = async (context: BrowserContext): Promise<string | undefined> =>
  (await context.cookies()).find(({ name }) => name === 'auth_token')?.value

/** Closes the pages of a session. False if the session has ended, or if there was none. */
const leave = async ({ context, token }: Session): Promise<boolean> => {
  if (token === undefined || (await tokenOf(context)) !== token) return false
  for (const page of context.pages()) await page.close()
  return true
}

/** A valid image of this many bytes. */
export const pngOf = (bytes: number): Buffer => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkaPj/HwAEgQJ/zPcGFQAAAABJRU5ErkJggg=='
  return Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.alloc(bytes)])
}
