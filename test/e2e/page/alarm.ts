import type { Test } from 'tap'
import type { PageTests } from './page-tests.js'

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
      await page.getByText(/^[1-9]\d* of \d+ safe$/).waitFor({ timeout: 90_000 })

      await page.getByRole('button', { name: 'End emergency' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'End now' }).click()
      await page.getByRole('button', { name: 'Raise an alarm' }).waitFor()
      t.same(pageErrors, [])
    })
  })
}
