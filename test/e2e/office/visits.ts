import type { Test } from 'tap'
import type { PageTests } from '../page/page-tests.js'

export const visits = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('the dashboard figure of the visitors opens the people behind it', async (t) => {
    const { page, pageErrors } = await open(t, { as: 'operator' })
    await page.goto('/dashboard')
    await page.getByRole('link', { name: /^Visitors \d+/ }).click()
    await page.getByRole('table').getByRole('link').first().waitFor()
    t.same(pageErrors, [])
  })
}
