import t from 'tap'
import { startBrowser } from '../../../../test/helper/browser.js'
import { startDemoStack } from '../../helper/demo-stack.js'

/**
 * Shared by the tests of this folder, because starting them takes longer than most of the tests. The simulator is off: the
 * tests publish all positions. The relay keeps the last position of each transmitter.
 */
export const [stack, browser] = await Promise.all([startDemoStack(t, { DEMO_SIMULATOR: 'off' }), startBrowser(t)])
