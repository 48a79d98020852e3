import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { CLIENT_ERRORS, type PageTests } from './page-tests.js'

/** Resolves when the element has the focus. */
const hasFocus = (page: Page, element: Locator): Promise<void> => element.and(page.locator(':focus')).waitFor()

const press = async (page: Page, element: Locator, key = 'Enter'): Promise<void> => {
  await element.focus()
  await page.keyboard.press(key)
}

export const keyboard = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('the keyboard', { buffered: true }, async (t) => {
    t.test('the focus stays on the button of a row that a save has moved', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/inventory?search=microscope')
      const rows = page.getByRole('row')
      const edit = rows.nth(1).getByRole('button', { name: /^Edit Microscope/ })
      await rows.nth(2).waitFor()
      const label = (await edit.getAttribute('aria-label')) ?? ''
      await press(page, edit)
      const name = page.getByRole('dialog').getByLabel('Name')
      await name.fill(label.replace('Edit ', 'Z '))
      await page.keyboard.press('Enter')
      const moved = rows.last().getByRole('button', { name: label.replace('Edit ', 'Edit Z ') })
      await moved.waitFor()
      await hasFocus(page, moved)

      await page.keyboard.press('Enter')
      await name.fill(label.replace('Edit ', ''))
      await page.keyboard.press('Enter')
      await hasFocus(page, rows.nth(1).getByRole('button', { name: label }))
      t.same(pageErrors, [])
    })

    t.test('a record is added and deleted with the keyboard, and the focus stays on the page', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/inventory')
      const add = page.getByRole('button', { name: 'Add asset' })
      await press(page, add)
      await hasFocus(page, page.getByRole('dialog').getByLabel('Name'))
      await page.keyboard.type('Keyboard cart')
      const transmitter = page.getByRole('dialog').getByLabel('Transmitter')
      // The first option is "None"; the others are loaded with the list.
      await transmitter.locator('option').nth(1).waitFor({ state: 'attached' })
      await press(page, transmitter, 'ArrowDown')
      const transmitterId = await transmitter.inputValue()
      t.not(transmitterId, '')
      await press(page, page.getByRole('dialog').getByRole('button', { name: 'Create' }))
      await page.getByText('Keyboard cart was added').waitFor()
      await hasFocus(page, add)

      await page.getByLabel('Search by name').focus()
      await page.keyboard.type('keyboard cart')
      await page.getByRole('cell', { name: transmitterId }).waitFor()
      await press(page, page.getByRole('button', { name: 'Delete Keyboard cart' }))
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).focus()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.getByText('Nothing found').waitFor()
      await hasFocus(page, page.getByRole('region', { name: 'Assets' }))
      t.same(pageErrors, [])
    })

    t.test('a CSV file is imported with the keyboard', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      await page.goto('/personnel')
      const button = page.getByRole('button', { name: 'Import' })
      await press(page, button)
      const dialog = page.getByRole('dialog')
      const choose = async (content: string): Promise<void> => {
        const chosen = page.waitForEvent('filechooser')
        await press(page, dialog.getByLabel('CSV file'), 'Space')
        await (await chosen).setFiles({ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from(content) })
      }
      await hasFocus(page, dialog.getByLabel('CSV file'))
      await choose('firstName,email\nIda,not an address\n')
      await dialog.getByRole('cell', { name: 'E-mail address does not have the right form.' }).waitFor()
      await choose('firstName,lastName\nIda,Imported\n')
      await press(page, dialog.getByRole('button', { name: 'Import 1 row' }))
      await page.getByText('1 row added, 0 changed, 0 left out').waitFor()
      await hasFocus(page, button)

      await page.goto('/personnel?search=imported')
      await press(page, page.getByRole('button', { name: 'Delete Ida Imported' }))
      await press(page, dialog.getByRole('button', { name: 'Delete' }))
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    })

    t.test('the focus stays on a form whose input is rejected', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', expected: CLIENT_ERRORS })
      await page.goto('/settings')
      await page.getByLabel('Current password').fill('not the password')
      await page.getByLabel('New password').fill('another-password')
      await page.getByLabel('Repeat password').fill('another-password')
      const submit = page.getByRole('button', { name: 'Change password' })
      await press(page, submit)
      await page.getByRole('alert').getByText('The current password is wrong.').waitFor()
      await hasFocus(page, submit)
      t.same(pageErrors, [])
    })

    t.test('the last page of a list keeps the focus on its button', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      await page.goto('/zones?page=3')
      const next = page.getByRole('button', { name: 'Next' })
      await page.getByText(/^41–60 of \d+$/).waitFor()
      await press(page, next)
      await page.getByText(/^61–\d+ of \d+$/).waitFor()
      t.ok(await next.isDisabled())
      await hasFocus(page, next)
      t.same(pageErrors, [])
    })

    t.test('the zoom buttons of the plan keep the focus at their limits', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      await page.goto('/live/f-1')
      const [fit, zoomIn] = [page.getByRole('button', { name: 'Fit' }), page.getByRole('button', { name: 'Zoom in' })]
      await press(page, zoomIn)
      await eventually(() => fit.isEnabled())
      await press(page, fit)
      await eventually(() => fit.isDisabled())
      await hasFocus(page, fit)
      t.same(pageErrors, [])
    })
  })
}

/** Every page shows the drill. */
export const musterByKeyboard = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('people are marked safe one after the other with the keyboard', async (t) => {
    const { page, pageErrors } = await open(t, { as: 'operator' })
    await page.goto('/emergency')
    await press(page, page.getByRole('button', { name: 'Raise alarm' }))
    const dialog = page.getByRole('dialog')
    await hasFocus(page, dialog.getByRole('radio', { name: 'Fire' }))
    await page.keyboard.press('Space')
    await page.keyboard.press('ArrowDown')
    t.ok(await dialog.getByRole('radio', { name: 'Intruder' }).isChecked())
    await dialog.getByLabel('Building').selectOption('Main House')
    await press(page, dialog.getByLabel('What happened'))
    await hasFocus(page, dialog.getByRole('button', { name: 'Raise alarm now' }))
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await press(page, page.getByRole('button', { name: 'Start drill' }))
    await dialog.getByLabel('Building').selectOption('Entire site')
    await press(page, dialog.getByRole('button', { name: 'Start drill' }))
    // The button that opened the form is gone.
    await hasFocus(page, page.getByRole('heading', { level: 1, name: 'Emergency' }))

    const missing = page.getByRole('list', { name: 'Missing' }).getByRole('button')
    const nameOf = async (button: Locator): Promise<string> =>
      (await button.getAttribute('aria-label'))?.replace(/^Mark safe: (.*)$/, '$1') ?? ''
    // A person who reaches the muster point meanwhile is not in the list any more.
    await eventually(async () => {
      await missing.first().focus()
      return (await missing.and(page.locator(':focus')).count()) === 1
    })
    for (let count = 0; count < 2; count += 1) {
      const name = await nameOf(page.locator(':focus'))
      await page.keyboard.press('Enter')
      await page.getByText(`${name} was marked safe`).waitFor()
      await hasFocus(page, missing.and(page.locator(`:not([aria-label="Mark safe: ${name}"])`)))
    }

    await page.getByLabel('Search the muster').fill('nobody has this name')
    // A headless browser has no print dialog. The browser sends this event before it opens.
    await page.evaluate("print = () => dispatchEvent(new Event('beforeprint'))")
    await press(page, page.getByRole('button', { name: 'Print roll call' }))
    await page.emulateMedia({ media: 'print' })
    await page.getByText('Roll call (drill)').waitFor()
    await page.getByText(/^Printed \d/).waitFor()
    for (const hidden of [page.getByLabel('Sound'), page.getByRole('navigation'), page.getByLabel('Search the muster')])
      t.notOk(await hidden.isVisible())
    await page.getByRole('list', { name: 'Missing' }).getByRole('listitem').nth(1).waitFor()
    await page.emulateMedia({ media: null })

    await press(page, page.getByRole('button', { name: 'End drill' }))
    await page.getByRole('dialog').getByRole('button', { name: 'End now' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Start drill' }).waitFor()
    await hasFocus(page, page.getByRole('heading', { level: 1, name: 'Emergency' }))
    t.same(pageErrors, [])
  })
}
