import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import type { DemoPage } from '../../helper/demo-page.js'
import { CLIENT_ERRORS, type PageTests } from './page-tests.js'

/** Every resource that has a form: what is entered for a new record, of which the first is its name, and what is changed. */
type Case = readonly [
  path: string,
  noun: string,
  entered: Readonly<Record<string, string>>,
  label: string,
  value: string
]
const CASES: Readonly<Record<'admin' | 'operator', readonly Case[]>> = {
  operator: [
    ['/people', 'person', { 'First name': 'Zyta' }, 'Job title', 'Librarian'],
    ['/inventory', 'asset', { Name: 'Zoom lens' }, 'Category', 'optics'],
    ['/emergency/contacts', 'contact', { Name: 'Zoo rescue' }, 'Phone', '112']
  ],
  admin: [
    ['/site/zones', 'zone', { Name: 'Zebra room' }, 'Capacity', '7'],
    ['/site/receivers', 'receiver', { Name: 'Zeta receiver' }, 'Model', 'Z-1'],
    ['/site/buildings', 'building', { Name: 'Zenith' }, 'City', 'Zurich'],
    ['/site/departments', 'department', { Name: 'Zoology' }, 'Short name', 'ZOO'],
    ['/floors', 'floor', { Name: 'Zero floor' }, 'Level', '9'],
    ['/site/transmitters', 'transmitter', { Name: 'Zonal badge' }, 'Model', 'Z-2'],
    [
      '/site/users',
      'user',
      { 'E-mail address': 'zed@example.com', 'Initial password': 'a-first-password' },
      'Name',
      'Zed'
    ]
  ]
}

/** Creates, finds, changes and deletes a record with the one list and the one form. */
const edit = async (page: Page, [path, noun, entered, label, value]: Case): Promise<void> => {
  const [name = ''] = Object.values(entered)
  const dialog = page.getByRole('dialog')
  await page.goto(path)
  await page.getByRole('button', { name: `Add ${noun}` }).click()
  for (const [field, text] of Object.entries(entered)) await dialog.getByLabel(field, { exact: true }).fill(text)
  // Most floors and zones belong somewhere; the first choice will do.
  for (const field of ['Building', 'Floor']) {
    const choice = dialog.getByLabel(field, { exact: true })
    if ((await choice.count()) > 0) await choice.selectOption({ index: 0 })
  }
  await dialog.getByRole('button', { name: 'Create' }).click()
  await page.getByText(`${name} was added`).waitFor()
  await page.goto(`${path}?search=${encodeURIComponent(name)}`)
  await page.getByRole('button', { name: `Edit ${name}` }).click()
  await dialog.getByLabel(label, { exact: true }).fill(value)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText(`${name} was saved`).waitFor()
  // Transmitters cannot be deleted.
  if (noun === 'transmitter') return
  await page.getByRole('button', { name: `Delete ${name}` }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Nothing found').waitFor()
}

export const records = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('records', { buffered: true }, async (t) => {
    for (const role of ['admin', 'operator'] as const) {
      t.test(`the ${role} creates, finds, edits and deletes a record of every resource`, async (t) => {
        const { page, pageErrors } = await open(t, { as: role })
        for (const each of CASES[role]) {
          await edit(page, each)
          t.pass(each[0])
        }
        t.same(pageErrors, [])
      })
    }

    t.test('errors are beside their fields, and a changed form asks before it closes', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/people')
      await page.getByRole('button', { name: 'Add person' }).click()
      const form = page.getByRole('dialog')
      const email = form.getByLabel('E-mail address')
      await email.fill('no address')
      page.once('dialog', (asked) => void asked.dismiss())
      await page.keyboard.press('Escape')
      await form.getByRole('button', { name: 'Create' }).click()
      await form.getByText('E-mail address does not have the right form.').waitFor()
      await form.locator('[aria-invalid=true]:focus').waitFor()
      page.once('dialog', (asked) => void asked.accept())
      await page.keyboard.press('Escape')
      await form.waitFor({ state: 'hidden' })
      t.same(pageErrors, [])
    })

    t.test('a change of a record that another user has changed is rejected with a message', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      const other: DemoPage = await open(t, { as: 'admin' })
      for (const one of [page, other.page]) {
        await one.goto('/inventory?search=microscope')
        await one
          .getByRole('button', { name: /^Edit Microscope/ })
          .first()
          .click()
      }
      const save = async (one: Page, text: string): Promise<void> => {
        await one.getByRole('dialog').getByLabel('Description').fill(text)
        await one.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      }
      await save(other.page, 'theirs')
      await other.page.getByText(/was saved/).waitFor()
      await save(page, 'mine')
      await page
        .getByRole('alert')
        .getByText(/Nothing was saved\. Reload the page/)
        .waitFor()
      t.equal(await page.getByRole('dialog').getByLabel('Description').inputValue(), 'mine')
      t.same([...pageErrors, ...other.pageErrors], [])
    })

    t.test('a visitor gets a transmitter, is listed with the company, and returns it', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/people/visitors')
      await page.getByRole('button', { name: 'Add visitor' }).click()
      const form = page.getByRole('dialog')
      const option = form.getByLabel('Transmitter').locator('option').first()
      await option.waitFor({ state: 'attached' })
      await form.getByLabel('Transmitter').selectOption({ index: 0 })
      await form.getByLabel('First name').fill('Vera')
      await form.getByLabel('Last name').fill('Visitor')
      await form.getByLabel('Company').fill('Corvus Audit')
      await form.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Vera Visitor was added').waitFor()
      await page.goto('/people/visitors?search=vera')
      await page.getByRole('row').filter({ hasText: 'Vera Visitor' }).getByText('Corvus Audit').waitFor()
      await page.getByRole('button', { name: 'Delete Vera Visitor' }).click()
      await form.getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    })

    t.test('a list is filtered, sorted in both directions, and paged', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin' })
      await page.goto('/people?isOnSite=true')
      t.equal(await page.getByLabel('Presence').inputValue(), 'true', 'a link sets a filter')
      await page.getByLabel('Presence').selectOption('All')
      const first = page.getByRole('cell', { name: '@example.com' }).first()
      const sort = page.getByRole('button', { name: 'Person', exact: true })
      await sort.click()
      await page.getByRole('columnheader', { name: 'Person' }).and(page.locator('[aria-sort=ascending]')).waitFor()
      const ascending = await first.innerText()
      await sort.click()
      await eventually(async () => (await first.innerText()) > ascending)
      await page.getByRole('button', { name: 'Next' }).click()
      await page.getByText(/^21–40 of \d+$/).waitFor()
      await page.getByLabel('Department').selectOption({ index: 1 })
      await page.getByText(/^1–\d+ of \d+$/).waitFor()
      t.same(pageErrors, [])
    })

    t.test('people are exported as CSV and PDF, and a failed export saves no file', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: /status of 504/ })
      await page.goto('/people')
      for (const [format, name] of [
        ['CSV', 'personnel.csv'],
        ['PDF', 'personnel.pdf']
      ] as const) {
        const download = page.waitForEvent('download')
        await page.getByRole('button', { name: format }).click()
        t.equal((await download).suggestedFilename(), name)
      }
      const failure = { code: 'BACKEND_TIMEOUT', error: 'The service did not respond in time.' }
      await page.route('**/api/personnel/export/csv*', (route) => route.fulfill({ status: 504, json: failure }))
      page.on('download', () => t.fail('a file was saved'))
      await page.getByRole('button', { name: 'CSV' }).click()
      await page.getByText(`Not exported. ${failure.error}`).waitFor()
      t.same(pageErrors, [])
    })

    t.test('a record is added and deleted with the keyboard, and the focus stays on the page', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      const hasFocus = (selector: ReturnType<Page['locator']>) => selector.and(page.locator(':focus')).waitFor()
      await page.goto('/inventory')
      const add = page.getByRole('button', { name: 'Add asset' })
      await add.focus()
      await page.keyboard.press('Enter')
      await hasFocus(page.getByRole('dialog').getByLabel('Name'))
      await page.keyboard.type('Keyboard cart')
      await page.keyboard.press('Enter')
      await page.getByText('Keyboard cart was added').waitFor()
      await hasFocus(add)
      await page.getByLabel('Search').focus()
      await page.keyboard.type('keyboard cart')
      await page.getByText('1–1 of 1').waitFor()
      await page.getByRole('button', { name: 'Delete Keyboard cart' }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).focus()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.getByText('Nothing found').waitFor()
      t.not(await page.evaluate('document.activeElement === document.body'), true)
      t.same(pageErrors, [])
    })

    t.test('settings are changed within their limits, and unsaved ones are not lost without a question', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin', expected: CLIENT_ERRORS })
      await page.goto('/settings')
      const general = page.locator('section', { has: page.getByRole('heading', { name: 'General' }) })
      const minutes = general.getByLabel('Session timeout (minutes)')
      await minutes.fill('1')
      await general.getByRole('button', { name: 'Save' }).click()
      await general.getByText('Session timeout (minutes) must be at least 5.').waitFor()
      page.once('dialog', (asked) => void asked.dismiss())
      await page.getByRole('link', { name: 'Dashboard' }).click()
      t.match(page.url(), '/settings')
      await minutes.fill('480')
      await general.getByRole('button', { name: 'Save' }).click()
      await page.getByText('General saved').waitFor()
      await page.getByRole('link', { name: 'Dashboard' }).click()
      await page.waitForURL('**/dashboard')
      t.same(pageErrors, [])
    })
  })
}
