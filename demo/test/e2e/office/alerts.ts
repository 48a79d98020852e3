import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { startMailServer } from '../../helper/mail-server.js'
import { CLIENT_ERRORS, type PageTests } from '../page/page-tests.js'

export const alerts = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test(
    'alerts are sorted by severity, taken by a user, and found among the own ones',
    { buffered: true },
    async (t) => {
      const { page, pageErrors, findings } = await open(t, { as: 'admin' })
      await page.goto('/alerts?kind=battery-low')
      const sorted = page.waitForResponse(/sort=severityRank/)
      await page.getByRole('button', { name: 'Severity' }).click()
      await page.waitForURL(/sort=severityRank/)
      await sorted
      await page.locator('[aria-label=Alerts][aria-busy=false]').waitFor()
      // Named, not only coloured.
      await page.getByRole('row').nth(1).getByText('Critical', { exact: true }).waitFor()
      const first = page.getByRole('button', { name: /^Assign low battery: / }).first()
      const name = (await first.getAttribute('aria-label'))?.replace('Assign low battery: ', '') ?? ''
      // By its name, because the rows may change their places.
      await page.getByRole('button', { name: `Assign low battery: ${name}`, exact: true }).focus()
      await page.keyboard.press('Enter')
      const dialog = page.getByRole('dialog')
      const assignee = dialog.getByLabel('Assigned to').locator('option:checked')
      await eventually(async () => (await assignee.innerText()) === 'Me')
      t.same(await findings(), [])
      await page.keyboard.press('Tab')
      await dialog.getByRole('button', { name: 'Assign' }).press('Enter')
      await page.getByText(`${name} was assigned to you`).waitFor()
      await page.getByRole('search').getByLabel('Assigned to').selectOption({ label: 'Me' })
      await page.waitForURL(/assignee=demo-admin/)
      await page.getByRole('row').filter({ hasText: name }).getByRole('cell', { name: 'Alex Admin' }).waitFor()
      // The rows of the previous filter stay until the reply arrives: the third row disappears, the head and one alert remain.
      await page.getByRole('row').nth(2).waitFor({ state: 'detached' })
      t.same(pageErrors, [])
    }
  )

  await t.test(
    'a channel is added, its test tells the error, and the record has both deliveries',
    { buffered: true },
    async (t) => {
      const { page, pageErrors, findings } = await open(t, { as: 'admin', expected: CLIENT_ERRORS })
      const dialog = page.getByRole('dialog')
      await page.goto('/settings/channels')
      await page.getByRole('button', { name: 'Add channel' }).click()
      await dialog.getByLabel('Name').fill('Duty officers')
      await dialog.getByLabel('Recipients').fill('duty@example.com, reception@example.com')
      await dialog.getByLabel('From severity').selectOption('critical')
      t.same(await findings(), [])
      await dialog.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Duty officers was added').waitFor()
      const sendTest = async (): Promise<void> => {
        await page.getByRole('button', { name: 'Send a test to Duty officers' }).click()
        await dialog.getByRole('button', { name: 'Send test' }).click()
      }
      await sendTest()
      await dialog.getByText('The test was not delivered: The mail server is not set up').waitFor()

      const server = await startMailServer(t, { disabledCommands: ['STARTTLS'] })
      await page.goto('/settings')
      await page.getByLabel('Host').fill('127.0.0.1')
      await page.getByLabel('Port').fill(String(server.port))
      await page.getByLabel('Security').selectOption('none')
      await page.getByLabel('Sender').fill('gatehouse@example.com')
      await page
        .locator('form')
        .filter({ has: page.getByLabel('Host') })
        .getByRole('button', { name: 'Save' })
        .click()
      await page.getByText('Mail server saved').waitFor()
      await page.getByRole('link', { name: 'Notification channels' }).click()
      await sendTest()
      await page.getByText('The test was delivered to Duty officers.').waitFor()
      // The channel also sends the alerts of the simulated building.
      const mail = server.mails.find(({ source }) => source.includes('Test notification'))
      t.match(mail, { to: ['duty@example.com', 'reception@example.com'] })

      await page.getByRole('link', { name: 'Deliveries to Duty officers' }).click()
      const tests = page.getByRole('row').filter({ hasText: 'Test notification' })
      await tests.getByText('Failed').waitFor()
      await tests.getByText('Sent').waitFor()
      t.same(await findings(), [])
      t.same(pageErrors, [])
    }
  )
}
