import t from 'tap'
import { startBrowser } from '../../../test/helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'
import { alerts } from './office/alerts.js'
import { buildings } from './office/buildings.js'
import { guidance } from './office/guidance.js'
import { imports } from './office/imports.js'
import { visits } from './office/visits.js'
import type { PageTests } from './page/page-tests.js'

// One file, because starting the stack and the browser takes longer than most of the tests.
const [stack, browser] = await Promise.all([startDemoStack(t, { DEMO_HISTORY: 'off' }), startBrowser(t)])
const tests: PageTests = { stack, open: (t, options) => openDemoPage(t, browser, stack, options) }

// Groups of tests run beside each other, because each waits for the browser most of its time.
t.jobs = 3
await Promise.all([visits, alerts, buildings, guidance, imports].map((suite) => suite(t, tests)))
