import t from 'tap'
import { startBrowser } from '../../../../test/helper/browser.js'
import { startDemoStack } from '../../helper/demo-stack.js'

/** Shared by the tests of this folder, because starting them takes longer than most of the tests. */
export const [stack, browser] = await Promise.all([startDemoStack(t), startBrowser(t)])

// The backend stores its past while it serves requests already.
await stack.printed('backend', 'past positions stored')
