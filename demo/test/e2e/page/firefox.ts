import type { Page } from 'puppeteer-core'
import type { Test } from 'tap'
import { openFirefox } from '../../../../test/helper/browser.js'
import { eventually } from '../../../../test/helper/eventually.js'
import { DEMO_PASSWORD } from '../../helper/demo-stack.js'
import { type PageTests, PLAN } from './page-tests.js'

/** An element by its accessible role and name. */
const byRole = (role: string, name: string): string => `::-p-aria([name="${name}"][role="${role}"])`

/** Console errors, warnings, uncaught errors and CSP violations. */
const errorsOf = async (page: Page): Promise<readonly string[]> => {
  const errors: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') errors.push(message.text())
  })
  page.on('pageerror', (error) => errors.push(`uncaught: ${error}`))
  await page.evaluateOnNewDocument(`addEventListener('securitypolicyviolation', (event) =>
    console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`)
  return errors
}

/** Evaluates an expression in the page. The caller knows its type. */
const evaluate = async <T>(page: Page, expression: string): Promise<T> => (await page.evaluate(expression)) as T

/** The main functions in Firefox. All other tests use Chromium. */
export const inFirefox = async (t: Test, { stack }: PageTests): Promise<void> => {
  await t.test('the page works in Firefox', { buffered: true }, async (t) => {
    const page = await openFirefox(t)
    const errors = await errorsOf(page)
    /** The scale of the plan, or null while the whole floor is shown. */
    const scale = (): number | null => {
      const view = new URL(page.url()).searchParams.get('view')
      return view === null ? null : Number(view.split(',')[2])
    }

    await t.test('a user signs in with Firefox, and markers move', async (t) => {
      await page.goto(`${stack.url}/live/f-1`)
      await page.locator('input[type=email]').fill('operator@example.com')
      await page.locator('input[type=password]').fill(DEMO_PASSWORD)
      await page.locator(byRole('button', 'Sign in')).click()
      await page.locator('::-p-text(Last update: just now)').wait()
      const picture = (): Promise<string> => evaluate(page, `document.querySelector('${PLAN}').toDataURL()`)
      const first = await picture()
      await eventually(async () => (await picture()) !== first)
      t.same(errors, [])
    })

    await t.test('the search selects a person in Firefox, and the card shows details', async (t) => {
      await page.locator('input[type=search]').fill('an')
      await page.locator('.list .entry').click()
      await page.locator('.details dl').wait()
      await eventually(() => new URL(page.url()).searchParams.has('selected'))
      await page.locator(byRole('button', 'Close details')).click()
      await eventually(() => !new URL(page.url()).searchParams.has('selected'))
      t.same(errors, [])
    })

    await t.test('the wheel and the keyboard zoom the plan in Firefox', async (t) => {
      await page.locator(PLAN).hover()
      await page.mouse.wheel({ deltaY: -200 })
      const zoomed = await eventually(scale)
      await page.focus('[role=region][aria-label=Plan]')
      await page.keyboard.press('+')
      await eventually(() => (scale() ?? 0) > zoomed * 1.1)
      await page.keyboard.press('0')
      await eventually(() => scale() === null)
      t.same(errors, [])
    })

    await t.test('dashboard and alerts are shown in Firefox', async (t) => {
      await page.locator(byRole('link', 'Dashboard')).click()
      await page.locator('[role=img] canvas').wait()
      await eventually(() =>
        evaluate<boolean>(
          page,
          `{
            const chart = document.querySelector('[role=img] canvas')
            const { data } = chart.getContext('2d').getImageData(0, 0, chart.width, chart.height)
            data.some((value) => value > 0)
          }`
        )
      )
      await page.locator('a[href="/alerts"]').click()
      await page.locator('tbody td').wait()
      t.same(errors, [])
    })

    await t.test('personnel are exported with Firefox, and a sign-out leads to the login page', async (t) => {
      await page.locator(byRole('link', 'Personnel')).click()
      // The name of the file is read instead of saving it to a folder.
      await evaluate(
        page,
        `{
          window.savedFile = new Promise((resolve) => {
            HTMLAnchorElement.prototype.click = function () {
              resolve(this.download)
            }
          })
          null
        }`
      )
      await page.locator(byRole('button', 'CSV')).click()
      t.equal(await evaluate<string>(page, 'window.savedFile'), 'personnel.csv')
      await page.locator(byRole('button', 'Sign out')).click()
      await page.locator('input[type=password]').wait()
      t.equal(await evaluate<string>(page, 'location.pathname'), '/login')
      t.same(errors, [])
    })
  })
}
