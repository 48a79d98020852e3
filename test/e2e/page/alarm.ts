import type { Test } from 'tap'
import { PATIENCE_MS } from '../../helper/browser.js'
import { eventually } from '../../helper/eventually.js'
import type { PageTests } from './page-tests.js'

/** For one attempt on a busy machine. */
const FOUND_WITHIN_MS = 20_000

export const alarm = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('an alarm', async (t) => {
    t.test('an alarm shows the muster list and can be ended', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Raise an alarm' }).click()
      const form = page.getByRole('dialog')
      await form.getByLabel('Building').selectOption({ label: 'Workshop' })
      await form.getByRole('button', { name: 'Start drill' }).click()
      await page.getByRole('heading', { name: 'Missing' }).waitFor()
      await page.getByRole('alert').getByText('Drill').waitFor()
      await page.getByText(/^Drill in Workshop, active since/).waitFor()
      t.equal(await page.title(), 'DRILL: Emergency · Gatehouse')
      await page
        .getByRole('status')
        .getByText(/^[1-9]\d* of \d+ safe$/)
        .waitFor({ timeout: 90_000 })

      t.equal(await page.getByRole('button', { name: 'End emergency' }).count(), 0)
      await page.getByRole('button', { name: 'End drill' }).click()
      const end = page.getByRole('dialog', { name: 'End drill' })
      await end.getByText('Everyone is notified that the drill is over.').waitFor()
      await end.getByRole('button', { name: 'End now' }).click()
      await page.getByText('Drill ended').waitFor()
      await page.getByRole('button', { name: 'Raise an alarm' }).waitFor()
      await page
        .getByRole('region', { name: 'Past emergencies and drills' })
        .getByRole('cell', { name: 'Workshop' })
        .first()
        .waitFor()
      await eventually(async () => (await page.title()) === 'Emergency · Gatehouse')
      t.same(pageErrors, [])
    })

    t.test('a missing person is marked safe and found on the plan', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: /WebSocket/ })
      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Raise an alarm' }).click()
      await page.getByRole('dialog').getByLabel('This is a drill').uncheck()
      await page.getByRole('dialog').getByRole('button', { name: 'Raise alarm' }).click()
      const missing = page.getByRole('list', { name: 'Missing' })
      const button = missing.getByRole('button').first()
      const firstName = async (): Promise<string> =>
        (await button.getAttribute('aria-label'))?.replace(/^Mark (.*) safe$/, '$1') ?? ''
      const name = await firstName()
      await button.click()
      await page.getByText(`${name} was marked safe`).waitFor()
      const safe = page.getByRole('list', { name: 'Safe' })
      await safe.getByText('Marked safe by Olive Operator').waitFor()
      await page.getByRole('button', { name: `Undo: ${name} is safe` }).click()
      await page.getByText(`${name} is no longer marked safe`).waitFor()

      // People leave the building meanwhile: one may have changed floors between the list and the plan.
      const isFound = async (): Promise<boolean> => {
        const name = await firstName()
        await missing.getByRole('link', { name }).click()
        await page.waitForURL(/\/live\/[^?]+\?selected=/)
        const selected = page.getByRole('button', { name, pressed: true })
        const found = await selected.waitFor({ timeout: FOUND_WITHIN_MS }).then(
          () => true,
          () => false
        )
        await page.goBack()
        return found
      }
      await eventually(isFound, { deadlineMs: PATIENCE_MS })
      await page.getByRole('button', { name: 'End emergency' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'End now' }).click()
      await page.getByRole('button', { name: 'Raise an alarm' }).waitFor()
      t.same(pageErrors, [])
    })
  })
}
