import type { BrowserContext, Locator, Page } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { openDemoPage } from '../../helper/demo-page.js'
import { browser, stack } from './stack.js'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

/** Requests of the page's user, with the CSRF token. */
const sender = async ({ request }: BrowserContext) => {
  const { csrfToken } = await (await request.get('/api/auth/csrf-token')).json()
  return async (method: string, path: string, data: object): Promise<void> => {
    const response = await request.fetch(path, { method, data, headers: { 'x-csrf-token': csrfToken } })
    if (!response.ok()) throw new Error(`${method} ${path} failed with ${response.status()}`)
  }
}

const badge = (page: Page): Locator => page.getByRole('link', { name: /^Alerts/ }).locator('.badge')
const openCount = async (page: Page): Promise<number> => Number.parseInt(await badge(page).innerText(), 10)

t.test('alerts', async (t) => {
  const opened = await openDemoPage(t, browser, stack, { as: 'admin' })
  const { page, context, pageErrors } = opened
  const send = await sender(context)
  const { data: receivers } = await (await context.request.get('/api/receivers?status=online&limit=1')).json()
  const [receiver] = receivers
  const row = page.getByRole('row').filter({ hasText: receiver.name })

  t.test('a new alert appears in the list and in the menu without a reload', async (t) => {
    await page.goto(`/alerts?kind=receiver-offline&search=${encodeURIComponent(receiver.name)}`)
    await page.getByText('Nothing found').waitFor()
    await badge(page).waitFor()
    // Every receiver has been silent for more than no time.
    await send('PATCH', '/api/mgmt/settings/alerts', { offlineAfterMinutes: 0 })
    await row.waitFor()
    t.match(await row.innerText(), /Receiver offline/)
    await eventually(async () => {
      const { data } = await (await context.request.get('/api/alerts/summary')).json()
      return (await openCount(page)) === data.reduce((sum: number, { open }: { open: number }) => sum + open, 0)
    })
  })

  t.test('an alert is acknowledged with the keyboard through the relay, and the list shows by whom', async (t) => {
    const requests: string[] = []
    page.on('request', (request) => request.method() === 'POST' && requests.push(request.url()))
    await page.goto(`/alerts?kind=receiver-offline&search=${encodeURIComponent(receiver.name)}`)
    const button = row.getByRole('button', { name: `Acknowledge receiver offline: ${receiver.name}` })
    await button.focus()
    await page.keyboard.press('Enter')
    await page.getByText(`${receiver.name} was acknowledged`).waitFor()
    await row.getByText('Alex Admin').waitFor()
    await page.getByRole('region', { name: 'Alerts' }).and(page.locator(':focus')).waitFor()
    t.equal(await button.count(), 0)
    t.same(requests, [], 'no request to the gateway')
    await page.getByLabel('State').selectOption('open')
    await page.waitForURL(/state=open/)
    await page.getByText('Nothing found').waitFor()
  })

  t.test('all alerts of a page are acknowledged together, after a confirmation', async (t) => {
    await page.goto('/alerts?kind=battery-low&state=open')
    await page.getByRole('button', { name: 'Acknowledge all' }).click()
    const dialog = page.getByRole('dialog')
    const note = await dialog.getByText(/The \d+ open alerts of this page/).innerText()
    await dialog.getByRole('button', { name: 'Acknowledge' }).click()
    await page.getByText(`${note.match(/\d+/)?.[0]} alerts were acknowledged`).waitFor()
    await page.getByText('Nothing found').waitFor()
    t.equal(await page.getByRole('button', { name: 'Acknowledge all' }).count(), 0)
  })

  t.test('an alert links to its receiver on the live plan', async (t) => {
    await page.goto(`/alerts?search=${encodeURIComponent(receiver.name)}&kind=receiver-offline`)
    await row.getByRole('link', { name: receiver.name }).click()
    await page.waitForURL(/\/live\//)
    t.ok(page.url().endsWith(`/live/${receiver.floorId}?receiver=${receiver.id}`), page.url())
    await page.getByText(`Outlined on the plan: Receiver ${receiver.name} (offline)`).waitFor()
    await page.getByRole('button', { name: 'Remove outline' }).click()
    await page.getByText('Outlined on the plan').waitFor({ state: 'detached' })
  })

  t.test('an alert of a person links to the person on the live plan', async () => {
    // The person may have changed floors between the list and the plan.
    const isFound = async (): Promise<boolean> => {
      await page.goto('/alerts?kind=battery-low')
      const link = page.getByRole('cell').getByRole('link').first()
      const name = await link.innerText()
      await link.click()
      await page.waitForURL(/\/live\/[^?]+\?selected=/)
      const entry = page.getByRole('region', { name: 'People and assets' }).getByRole('button', { name, pressed: true })
      await entry.waitFor({ timeout: 20_000 })
      return (await entry.count()) === 1
    }
    await eventually(isFound)
  })

  t.test('rows keep their places under the mouse until the user updates the list', async (t) => {
    await page.goto('/alerts?kind=receiver-offline')
    const rows = page.getByRole('row')
    const href = (await rows.nth(2).getByRole('link').first().getAttribute('href')) ?? ''
    const id = new URL(href, 'http://localhost').searchParams.get('receiver')
    const ending = page.locator(`tr a[href="${href}"]`)
    await rows.nth(1).hover()
    await send('PUT', `/api/receivers/${id}`, { isActive: false })
    await page.getByText('The list has changed.').waitFor()
    t.equal(await ending.count(), 1)
    await page.getByRole('button', { name: 'Update' }).click()
    await ending.waitFor({ state: 'detached' })
    await page.getByText('The list has changed.').waitFor({ state: 'detached' })
  })

  t.test('no error is reported by the pages with alerts', async (t) => t.same(pageErrors, []))

  t.test('a viewer sees alerts but no action', async (t) => {
    const viewer = await openDemoPage(t, browser, stack, { as: 'viewer', ...PHONE })
    await viewer.page.goto('/alerts')
    await viewer.page.getByRole('row').nth(1).waitFor()
    t.equal(await viewer.page.getByRole('button', { name: /^Acknowledge/ }).count(), 0)
    t.equal(await viewer.page.evaluate('document.documentElement.scrollWidth'), PHONE.viewport.width)
    await viewer.page.goto('/dashboard')
    await viewer.page.getByRole('link', { name: /^\d+ open alerts$/ }).tap()
    await viewer.page.waitForURL('**/alerts')
    t.same(viewer.pageErrors, [])
  })
})
