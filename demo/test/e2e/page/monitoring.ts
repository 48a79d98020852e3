import type { Locator } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import type { PageTests } from './page-tests.js'

export const monitoring = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('monitoring', { buffered: true }, async (t) => {
    t.test(
      'the dashboard has plots that follow the window and the theme, and figures that link to their lists',
      async (t) => {
        const { page, pageErrors } = await open(t, { as: 'operator', colorScheme: 'light' })
        await page.goto('/dashboard')
        const chart = page.getByRole('img', { name: /^Number of people/ })
        const canvas = chart.locator('canvas')
        await canvas.waitFor()
        await page
          .getByRole('img', { name: /^Temperature/ })
          .locator('canvas')
          .waitFor()
        const occupancy = page.getByRole('region', { name: 'Occupancy' })
        for (const name of ['Main House', 'Research Wing', 'Workshop'])
          await occupancy.getByRole('list').getByText(name).waitFor()
        await occupancy.getByText('Show as table').click()
        await occupancy.getByRole('table').getByRole('row').nth(1).waitFor()

        const picture = () => canvas.evaluate((element: unknown) => (element as { toDataURL(): string }).toDataURL())
        const width = async (): Promise<number> => (await canvas.boundingBox())?.width ?? 0
        const [wide, light] = [await width(), await picture()]
        await page.emulateMedia({ colorScheme: 'dark' })
        await eventually(async () => (await picture()) !== light)
        await page.setViewportSize({ width: 400, height: 800 })
        await eventually(async () => (await width()) < wide)
        await page.setViewportSize({ width: 1280, height: 720 })

        const follow = async (link: RegExp, path: RegExp, control: string, value: string): Promise<void> => {
          await page.getByRole('link', { name: 'Dashboard', exact: true }).click()
          await page.getByRole('main').getByRole('link', { name: link }).first().click()
          await page.waitForURL(path)
          await eventually(async () => (await page.getByLabel(control, { exact: true }).inputValue()) === value)
        }
        await follow(/^Employees on site/, /people\?isOnSite=true/, 'Presence', 'true')
        await follow(/^Open alerts/, /alerts\?state=open/, 'State', 'open')
        await follow(/^Silent tag/, /alerts\?kind=tag-silent/, 'Kind', 'tag-silent')
        await follow(/^Quality/, /people\?departmentId=5/, 'Department', '5')
        await follow(/^Good/, /transmitters\?batteryState=good/, 'Battery', 'good')
        t.same(pageErrors, [])
      }
    )

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
      await page.getByText(`${receiver.name} was acknowledged`).waitFor()
      await row.getByText('Alex Admin').waitFor()
      await page.getByRole('region', { name: 'Alerts' }).and(page.locator(':focus')).waitFor()
      t.same(requests, [], 'no request to the gateway')
      await row.getByRole('link', { name: receiver.name }).click()
      await page.waitForURL(`**/live/${receiver.floorId}?receiver=${receiver.id}`)
      t.same(pageErrors, [])
    })
  })
}
