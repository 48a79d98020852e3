import t from 'tap'
import { startBrowser } from '../helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'
import { accessibility } from './page/accessibility.js'
import { alarm } from './page/alarm.js'
import { inFirefox } from './page/firefox.js'
import { keyboard } from './page/keyboard.js'
import { livePlan } from './page/live-plan.js'
import { loading } from './page/loading.js'
import { otherOrigin } from './page/other-origin.js'
import type { PageTests } from './page/page-tests.js'
import { records } from './page/records.js'
import { sessions } from './page/sessions.js'

// One file, because starting the stack and the browser takes longer than most of the tests.
const [stack, browser] = await Promise.all([startDemoStack(t), startBrowser(t)])
const tests: PageTests = { stack, open: (t, options) => openDemoPage(t, browser, stack, options) }

for (const suite of [loading, sessions, livePlan, records, alarm, keyboard, otherOrigin, accessibility, inFirefox])
  await suite(t, tests)
