import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { CLIENT_ERRORS, type PageTests } from '../page/page-tests.js'

export const visits = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test(
    'a visitor is added, checked in with a transmitter, raises an alert when overdue, and is checked out',
    { buffered: true },
    async (t) => {
      const { page, pageErrors, findings } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      const dialog = page.getByRole('dialog')
      await page.goto('/visits')
      await page.getByRole('button', { name: 'Add visit' }).click()
      await dialog.getByLabel('Name').fill('Vera Visitor')
      await dialog.getByLabel('Company').fill('Corvus Audit')
      await dialog.getByLabel('Host').selectOption({ index: 3 })
      const host = await dialog.getByLabel('Host').locator('option').nth(3).innerText()
      const begin = await dialog.getByLabel('Expected from').inputValue()
      // An end before the beginning is reported beside its field.
      await dialog.getByLabel('Expected to').fill('2020-01-01T10:00')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.getByText('Expected to must be after the beginning.').waitFor()
      await dialog.getByLabel('Expected to').fill(`${Number(begin.slice(0, 4)) + 1}-01-15T10:00`)
      await dialog.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Vera Visitor was added').waitFor()

      await page.getByLabel('Search by name, company or host').fill('vera visitor')
      await page.getByRole('cell', { name: host }).waitFor()
      await page.getByRole('button', { name: 'Check in Vera Visitor' }).click()
      t.same(await findings(), [])
      await dialog.getByLabel('Transmitter').selectOption({ index: 1 })
      await dialog.getByRole('button', { name: 'Check in' }).click()
      await page.getByText('Vera Visitor is on site').waitFor()
      const row = page.getByRole('row').filter({ hasText: 'Vera Visitor' })
      await row.getByRole('cell', { name: 'On site' }).waitFor()
      t.equal(await page.getByRole('button', { name: 'Delete Vera Visitor' }).count(), 0)

      await page.getByRole('button', { name: 'Edit Vera Visitor' }).click()
      await dialog.getByLabel('Expected from').fill('2020-01-01T09:00')
      await dialog.getByLabel('Expected to').fill('2020-01-01T10:00')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await row.getByRole('cell', { name: 'Overdue' }).waitFor()
      await page.goto('/alerts?kind=visit-overdue&search=vera')
      await page.getByRole('link', { name: 'Visit of Vera Visitor' }).click()
      await page.waitForURL('**/visits?**status=overdue**')

      await page.getByRole('button', { name: 'Check out Vera Visitor' }).click()
      await dialog.getByText(/^Take Badge \d+ back from Vera Visitor/).waitFor()
      await dialog.getByRole('button', { name: 'Check out' }).click()
      await page.getByText('Vera Visitor has left').waitFor()
      await page.getByLabel('Status').selectOption('left')
      await page.getByRole('cell', { name: 'Left' }).first().waitFor()
      t.same(pageErrors, [])
    }
  )

  await t.test(
    'of two receptions that give away the same transmitter, the second is told to choose another',
    { buffered: true },
    async (t) => {
      const [one, other] = [await open(t, { as: 'operator', expected: CLIENT_ERRORS }), await open(t, { as: 'admin' })]
      const choose = async ({ page }: typeof one, name: string): Promise<void> => {
        await page.goto('/visits?status=expected')
        await page.getByRole('button', { name }).click()
        await page.getByRole('dialog').getByLabel('Transmitter').selectOption({ index: 2 })
      }
      const names = async ({ page }: typeof one): Promise<string[]> => {
        await page.goto('/visits?status=expected')
        const buttons = page.getByRole('button', { name: /^Check in / })
        await buttons.nth(1).waitFor()
        return buttons.evaluateAll((all: { getAttribute(name: string): string }[]) =>
          all.map((one) => one.getAttribute('aria-label'))
        )
      }
      const [first = '', second = ''] = await names(one)
      await choose(one, first)
      await choose(other, second)
      await other.page.getByRole('dialog').getByRole('button', { name: 'Check in' }).click()
      await other.page.getByText(/ is on site$/).waitFor()
      const form = one.page.getByRole('dialog')
      await form.getByRole('button', { name: 'Check in' }).click()
      await form.getByText('The transmitter has been assigned meanwhile. Choose another one.').waitFor()
      await form.getByText('Transmitter is carried by someone or something else.').waitFor()
      t.same([...one.pageErrors, ...other.pageErrors], [])
    }
  )

  await t.test('the dashboard figure of the visitors opens their visits', { buffered: true }, async (t) => {
    const { page, pageErrors } = await open(t, { as: 'viewer' })
    await page.goto('/dashboard')
    const figure = page.getByRole('link', { name: /^Visitors \d+/ })
    const count = /\d+/.exec(await figure.innerText())?.[0]
    await figure.click()
    await page.getByText(`${count} visits`).waitFor()
    await eventually(async () => (await page.getByLabel('Status').inputValue()) === 'on-site')
    t.equal(await page.getByRole('button', { name: /^Check (in|out)/ }).count(), 0, 'a viewer only looks')
    await page.getByRole('table').getByRole('link').first().click()
    await page.getByText('Host', { exact: true }).waitFor()
    t.same(pageErrors, [])
  })
}
