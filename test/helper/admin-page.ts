import type { Browser, Locator } from 'playwright-core'
import type { Test } from 'tap'
import { ADMIN_PASSWORD } from './admin.js'
import { type BrowserWindow, openWindow, type WindowOptions } from './window.js'

/** What a relay needs for the operators' page; windows have addresses of their own. */
export const ADMIN_ENV = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD, TRUST_PROXY: 'loopback' } as const

/** A window in front of the operators' page, signed in. */
export const openAdminPage = async (
  t: Test,
  browser: Browser,
  { url }: { readonly url: string },
  options: WindowOptions = {}
): Promise<BrowserWindow> => {
  const opened = await openWindow(t, browser, url, options)
  const answer = await opened.context.request.post('/admin/api/sign-in', { data: { password: ADMIN_PASSWORD } })
  if (!answer.ok()) throw new Error(`signing in was answered with ${answer.status()}`)
  return opened
}

/** The newest value of a figure. */
export const figure = ({ page }: BrowserWindow, title: string): Locator =>
  page.getByRole('region', { name: title, exact: true }).locator('.value')

/** One of the first checks, in this state. */
export const check = ({ page }: BrowserWindow, id: string, state: 'green' | 'amber' | 'red'): Locator =>
  page.locator(`[data-check="${id}"]:has([data-state="${state}"])`)
