import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { CLIENT_ERRORS, type PageTests } from '../page/page-tests.js'

export const buildings = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test(
    'a building is added, says what is missing, is changed by two users, and deleted',
    { buffered: true },
    async (t) => {
      const { page, context, pageErrors } = await open(t, { as: 'admin', expected: CLIENT_ERRORS })
      const dialog = page.getByRole('dialog')
      await page.goto('/dashboard')
      await page.getByRole('link', { name: 'Buildings' }).click()
      await page.getByRole('button', { name: 'Add building' }).click()
      await dialog.getByLabel('Name', { exact: true }).fill('Annex')
      await dialog.getByLabel('City').fill('Berlin')
      await dialog.getByRole('button', { name: 'Create' }).click()
      const row = page.getByRole('row').filter({ hasText: 'Annex' })
      await row.getByText('No floors yet: add one').waitFor()
      await row.getByRole('link', { name: 'Overview of Annex' }).click()
      await page.getByText('This building has no floors yet.').waitFor()
      await page.getByRole('link', { name: 'Add a floor' }).click()
      await page.getByRole('button', { name: 'Add floor' }).click()
      // The names of the buildings may load after the form has opened.
      const building = dialog.getByLabel('Building').locator('option:checked')
      await eventually(async () => (await building.innerText()) === 'Annex')
      await dialog.getByLabel('Name', { exact: true }).fill('Ground floor')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('link', { name: 'Ground floor' }).first().click()
      const steps = page.getByRole('region', { name: 'What to do next with Ground floor' }).getByRole('link')
      t.equal(await steps.first().innerText(), 'Enter the width and depth of the floor.')
      await eventually(async () => (await steps.count()) === 4)

      await page.goto('/buildings')
      await page.getByRole('button', { name: 'Edit Annex' }).click()
      const { data } = await (await context.request.get('/api/buildings?search=annex')).json()
      const { csrfToken } = await (await context.request.get('/api/auth/csrf-token')).json()
      await context.request.put(`/api/buildings/${data[0].id}`, {
        data: { city: 'Potsdam' },
        headers: { 'x-csrf-token': csrfToken }
      })
      await dialog.getByLabel('City').fill('Hamburg')
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.getByText('Alex Admin has changed this record').waitFor()
      await dialog.getByRole('button', { name: 'Save' }).click()
      await row.getByText('Hamburg').waitFor()

      await page.getByRole('button', { name: 'Delete Main House' }).click()
      await dialog.getByText(/3 floors, 22 zones, .* will be deleted too/).waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await page.getByRole('button', { name: 'Delete Annex' }).click()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Annex was deleted').waitFor()
      t.same(pageErrors, [])
    }
  )

  await t.test('who may enter a restricted zone is chosen by name with the keyboard', { buffered: true }, async (t) => {
    const { page, pageErrors, findings } = await open(t, { as: 'operator' })
    const dialog = page.getByRole('dialog')
    await page.goto('/zones?search=server%20room')
    const row = page.getByRole('row').filter({ hasText: 'Server Room' })
    await row.getByText('restricted: Information Technology, Security').waitFor()
    await row.getByRole('button', { name: 'Edit Server Room' }).click()
    await dialog.getByRole('group', { name: 'Categories' }).getByLabel('All contractors').press('Space')
    const search = dialog.getByRole('searchbox', { name: 'Persons who may enter' })
    await search.pressSequentially('an')
    const person = dialog.getByRole('group', { name: 'Persons who may enter' }).getByRole('checkbox').first()
    await person.waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    t.equal(await person.isChecked(), true)
    const name = (await person.locator('xpath=..').innerText()).replace(/ \(.*/, '')
    t.same(await findings(), [])
    await dialog.getByRole('button', { name: 'Save' }).press('Enter')
    await row.getByText(`restricted: All contractors, Information Technology, Security, ${name}`).waitFor()
    t.same(pageErrors, [])
  })
}
