import t from 'tap'
import { startBrowser } from '../helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'
import { alarm } from './page/alarm.js'
import { keyboard } from './page/keyboard.js'
import { livePlan } from './page/live-plan.js'
import type { PageTests } from './page/page-tests.js'

// Every page shows an alarm and an outage of the relay or the backend, so these tests run one after the other and have a stack
// of their own.
const [stack, browser] = await Promise.all([startDemoStack(t, { DEMO_HISTORY: 'off' }), startBrowser(t)])
const tests: PageTests = { stack, open: (t, options) => openDemoPage(t, browser, stack, options) }

for (const suite of [livePlan, alarm, keyboard]) await suite(t, tests)
