import type { Test } from 'tap'
import type { DemoPage, DemoPageOptions } from '../../helper/demo-page.js'
import type { DemoStack } from '../../helper/demo-stack.js'

/** Shared by all page tests: one stack and one browser. Each test has its own window, account and records. */
export interface PageTests {
  readonly stack: DemoStack
  open(t: Test, options?: DemoPageOptions): Promise<DemoPage>
}

export const CLIENT_ERRORS = /Failed to load resource: the server responded with a status of 4\d\d/
export const PLAN = 'canvas[role=img]'
