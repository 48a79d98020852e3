import type { Browser } from 'playwright-core'
import type { Test } from 'tap'
import { DEMO_PASSWORD, type DemoStack } from './demo-stack.js'
import { type BrowserWindow, openWindow, type WindowOptions } from './window.js'

export type Role = 'admin' | 'operator' | 'viewer'

export type DemoPage = BrowserWindow

export interface DemoPageOptions extends WindowOptions {
  /** Signs in first. */
  readonly as?: Role
  /** With the guidance of the first visit, which is dismissed otherwise. */
  readonly isFirstVisit?: boolean
}

/** Opens a browser window with the demo. */
export const openDemoPage = async (
  t: Test,
  browser: Browser,
  { url }: DemoStack,
  { as, isFirstVisit = false, ...options }: DemoPageOptions = {}
): Promise<DemoPage> => {
  const opened = await openWindow(t, browser, url, options)
  if (!isFirstVisit) await opened.context.addInitScript("localStorage.setItem('gatehouse-first-steps', 'dismissed')")
  if (as) {
    const credentials = { email: `${as}@example.com`, password: DEMO_PASSWORD }
    const response = await opened.context.request.post('/api/auth/login', { data: credentials })
    if (!response.ok()) throw new Error(`signing in as ${as} failed with ${response.status()}`)
  }
  return opened
}

/** A valid image of this many bytes. */
export const pngOf = (bytes: number): Buffer => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkaPj/HwAEgQJ/zPcGFQAAAABJRU5ErkJggg=='
  return Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.alloc(bytes)])
}
