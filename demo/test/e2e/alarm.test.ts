import t from 'tap'
import { startBrowser } from '../../../test/helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'
import { alarm } from './page/alarm.js'
import { livePlan, lostRelay } from './page/live-plan.js'
import type { PageTests } from './page/page-tests.js'

const [stack, browser] = await Promise.all([startDemoStack(t), startBrowser(t)])
const tests: PageTests = { stack, open: (t, options) => openDemoPage(t, browser, stack, options) }

await livePlan(t, tests)
// One after the other, because every page shows an alarm and an outage of the relay or the backend.
for (const suite of [lostRelay, alarm]) await suite(t, tests)
