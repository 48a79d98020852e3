import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'
import { CLIENT_ERRORS, type PageTests } from '../page/page-tests.js'

/** Opens the import of the list and chooses a file. Returns the dialog. */
const chooseFile = async (page: Page, rows: readonly string[]): Promise<Locator> => {
  await page.getByRole('button', { name: 'Import' }).click()
  const dialog = page.getByRole('dialog')
  const buffer = Buffer.from(rows.join('\r\n'))
  await dialog.getByLabel('CSV file').setInputFiles({ name: 'rows.csv', mimeType: 'text/csv', buffer })
  return dialog
}

export const imports = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test(
    'visits are imported after a preview of new, changed, duplicate and faulty rows',
    { buffered: true },
    async (t) => {
      const { page, pageErrors, findings } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      await page.goto('/visits')
      const dialog = await chooseFile(page, [
        'id,name,company,email,expectedFrom,expectedTo',
        ',Petra Preview,Corvus Audit,petra@example.com,2031-03-01 09:00,2031-03-01 12:00',
        ',Petra Preview,Corvus Audit,petra@example.com,2031-03-01 09:00,2031-03-01 12:00',
        ',Fritz Faulty,Corvus Audit,fritz@example.com,2031-03-01 09:00,soon',
        'visitor-2,Renamed Guest,Corvus Audit,,2031-03-01 09:00,2031-03-01 12:00'
      ])
      await dialog.getByRole('row', { name: /^2 Petra Preview Company: Corvus Audit/ }).waitFor()
      await dialog.getByRole('button', { name: 'Changed 1' }).click()
      await dialog.getByText('Name: ').getByText('→ Renamed Guest').waitFor()
      await dialog.getByRole('button', { name: 'Duplicates 1' }).click()
      await dialog.getByText('E-mail address is also in line 2.').waitFor()
      await dialog.getByRole('button', { name: 'Faulty 1' }).click()
      await dialog.getByRole('row', { name: /^4 Fritz Faulty Expected to / }).waitFor()
      t.same(await findings(), [])
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await page.getByLabel('Search by name').fill('petra')
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    }
  )

  await t.test(
    'an import whose records have changed since the preview shows a new preview first',
    { buffered: true },
    async (t) => {
      const { page, pageErrors, context } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      await page.goto('/inventory')
      const dialog = await chooseFile(page, ['id,description', '3,From the file'])
      await dialog.getByText('Description: empty → From the file').waitFor()
      const { csrfToken } = await (await context.request.get('/api/auth/csrf-token')).json()
      const headers = { 'x-csrf-token': csrfToken }
      await context.request.put('/api/assets/3', { headers, data: { description: 'By somebody else' } })
      await dialog.getByRole('button', { name: 'Import 1 row' }).click()
      await dialog.getByRole('alert').getByText('have changed since the preview. Nothing was imported.').waitFor()
      await dialog.getByText('Description: By somebody else → From the file').waitFor()
      await dialog.getByRole('button', { name: 'Import 1 row' }).click()
      await page.getByText('0 rows added, 1 changed, 0 left out').waitFor()
      t.same(pageErrors, [])
    }
  )
}
