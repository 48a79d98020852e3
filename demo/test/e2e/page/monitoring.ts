import type { Locator } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import type { PageTests } from './page-tests.js'

/** A level line has no height, which counts as hidden. */
const ATTACHED = { state: 'attached' } as const

export const monitoring = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('monitoring', { buffered: true }, async (t) => {
    t.test('the dashboard has plots, and figures that link to their lists', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/dashboard')
      await page.getByRole('img', { name: 'Temperature and wind' }).locator('polyline').nth(1).waitFor(ATTACHED)
      const people = page.getByRole('img', { name: 'Number of people by floor' }).locator('polyline')
      await people.nth(2).waitFor(ATTACHED)
      const points = (await people.first().getAttribute('points')) ?? ''
      t.match(points, /^0,[\d.]+ .*100,[\d.]+$/, 'from the first time to the last one')
      for (const name of ['Ground floor', 'First floor', 'Second floor'])
        await page.getByRole('listitem').filter({ hasText: name }).getByText(/^\d+$/).waitFor()
      const follow = async (link: RegExp, path: RegExp, control: string, value: string): Promise<void> => {
        await page.getByRole('link', { name: 'Dashboard', exact: true }).click()
        await page.getByRole('main').getByRole('link', { name: link }).click()
        await page.waitForURL(path)
        await eventually(async () => (await page.getByLabel(control, { exact: true }).inputValue()) === value)
      }
      await follow(/^Employees on site/, /people\?isOnSite=true/, 'Presence', 'true')
      await follow(/^Open alerts/, /alerts\?state=open/, 'State', 'open')
      await follow(/^Receivers offline/, /receivers\?status=offline/, 'Status', 'offline')
      t.same(pageErrors, [])
    })

    t.test('a new alert appears in the list and the menu, and is acknowledged through the relay', async (t) => {
      const { page, context, pageErrors } = await open(t, { as: 'admin' })
      const { request } = context
      const { csrfToken } = await (await request.get('/api/auth/csrf-token')).json()
      const { data: receivers } = await (await request.get('/api/receivers?status=online&limit=1')).json()
      const [receiver] = receivers
      const row: Locator = page.getByRole('row').filter({ hasText: receiver.name })
      await page.goto(`/alerts?kind=receiver-offline&search=${encodeURIComponent(receiver.name)}`)
      await page.getByText('Nothing found').waitFor()
      // Every receiver has been silent for more than no time.
      const headers = { 'x-csrf-token': csrfToken }
      await request.patch('/api/mgmt/settings/alerts', { data: { offlineAfterMinutes: 0 }, headers })
      await row.waitFor()
      await page
        .getByRole('link', { name: /^Alerts/ })
        .locator('.badge')
        .waitFor()

      const requests: string[] = []
      page.on('request', (sent) => sent.method() === 'POST' && requests.push(sent.url()))
      await row.getByRole('button', { name: `Acknowledge receiver offline: ${receiver.name}` }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge' }).click()
      await page.getByText(`${receiver.name} was acknowledged`).waitFor()
      await row.getByText('Alex Admin').waitFor()
      t.same(requests, [], 'no request to the gateway')
      await row.getByRole('link', { name: receiver.name }).click()
      await page.waitForURL(`**/live/${receiver.floorId}?receiver=${receiver.id}`)
      t.same(pageErrors, [])
    })
  })
}
