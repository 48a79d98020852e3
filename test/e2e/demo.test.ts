import t from 'tap'
import { DEMO_PASSWORD, startDemoStack } from '../../demo/test/helper/demo-stack.js'
import { startBrowser } from '../helper/browser.js'
import { eventually } from '../helper/eventually.js'
import { openWindow } from '../helper/window.js'

const [stack, browser] = await Promise.all([startDemoStack(t), startBrowser(t)])

t.test('a user signs in to the demo and sees a dot move on the live plan', async (t) => {
  // Drawing a small plan without a GPU costs less.
  const viewport = { width: 400, height: 400 }
  const { page, pageErrors } = await openWindow(t, browser, stack.url, { viewport })
  await page.goto('/live/f-1')
  await page.getByLabel('E-mail address').fill('viewer@example.com')
  await page.getByLabel('Password').fill(DEMO_PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Last update: just now').waitFor()
  // The canvas shows nothing but markers.
  const picture = () =>
    page.locator('canvas[role=img]').evaluate((canvas: unknown) => (canvas as { toDataURL(): string }).toDataURL())
  const first = await picture()
  await eventually(async () => (await picture()) !== first)
  t.same(pageErrors, [])
})
