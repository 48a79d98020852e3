import type { Browser, Locator } from 'playwright-core'
import type { Test } from 'tap'
import { ADMIN_PASSWORD } from './admin.js'
import { type BrowserWindow, openWindow, type WindowOptions } from './window.js'

/** Enables the operators' page and lets every browser window have its own client address. */
export const ADMIN_ENV = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD, TRUST_PROXY: 'loopback' } as const

/** Opens a browser window that is signed in to the operators' page. */
export const openAdminPage = async (
  t: Test,
  browser: Browser,
  { url }: { readonly url: string },
  options: WindowOptions = {}
): Promise<BrowserWindow> => {
  const opened = await openWindow(t, browser, url, options)
  const response = await opened.context.request.post('/admin/api/sign-in', { data: { password: ADMIN_PASSWORD } })
  if (!response.ok()) throw new Error(`sign-in failed with ${response.status()}`)
  return opened
}

/** The latest value of a figure. */
export const figure = ({ page }: BrowserWindow, title: string): Locator =>
  page.getByRole('region', { name: title, exact: true }).locator('.value')

/** A check in the given state. */
export const check = ({ page }: BrowserWindow, id: string, state: 'green' | 'amber' | 'red'): Locator =>
  page.locator(`[data-check="${id}"]:has([data-state="${state}"])`)
