import t from 'tap'
import { startBrowser } from '../../../test/helper/browser.js'
import { openDemoPage } from '../helper/demo-page.js'
import { startDemoStack } from '../helper/demo-stack.js'
import { accessibility } from './page/accessibility.js'
import { inFirefox } from './page/firefox.js'
import { monitoring } from './page/monitoring.js'
import type { PageTests } from './page/page-tests.js'
import { records } from './page/records.js'
import { security } from './page/security.js'
import { sessions } from './page/sessions.js'

// One file, because starting the stack and the browser takes longer than most of the tests.
const [stack, browser] = await Promise.all([startDemoStack(t), startBrowser(t)])
const tests: PageTests = { stack, open: (t, options) => openDemoPage(t, browser, stack, options) }

// Groups of tests run beside each other, because each waits for the browser most of its time. None of them changes what all
// pages show, as an alarm does.
t.jobs = 3
await Promise.all([accessibility, records, sessions, monitoring, security, inFirefox].map((suite) => suite(t, tests)))
