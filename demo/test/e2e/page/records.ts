import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { type DemoPage, pngOf } from '../../helper/demo-page.js'
import { CLIENT_ERRORS, type PageTests } from './page-tests.js'

interface Case {
  readonly path: string
  readonly noun: string
  /** What is entered for a new record, by label; the first value is the name. */
  readonly entered: Readonly<Record<string, string>>
  /** A change: the label and the value. */
  readonly changed: readonly [label: string, value: string]
  readonly as: 'admin' | 'operator'
  /** Transmitters cannot be deleted. */
  readonly isKept?: boolean
}

/** Every resource that has a form. */
const CASES: readonly Case[] = [
  {
    path: '/people',
    noun: 'person',
    entered: { 'First name': 'Zyta' },
    changed: ['Job title', 'Librarian'],
    as: 'operator'
  },
  {
    path: '/inventory',
    noun: 'asset',
    entered: { Name: 'Zoom lens' },
    changed: ['Category', 'optics'],
    as: 'operator'
  },
  { path: '/site/zones', noun: 'zone', entered: { Name: 'Zebra room' }, changed: ['Capacity', '7'], as: 'admin' },
  {
    path: '/site/receivers',
    noun: 'receiver',
    entered: { Name: 'Zeta receiver' },
    changed: ['Model', 'Z-1'],
    as: 'admin'
  },
  { path: '/site/buildings', noun: 'building', entered: { Name: 'Zenith' }, changed: ['City', 'Zurich'], as: 'admin' },
  {
    path: '/site/departments',
    noun: 'department',
    entered: { Name: 'Zoology' },
    changed: ['Short name', 'ZOO'],
    as: 'admin'
  },
  {
    path: '/emergency/contacts',
    noun: 'contact',
    entered: { Name: 'Zoo rescue' },
    changed: ['Phone', '112'],
    as: 'operator'
  },
  { path: '/floors', noun: 'floor', entered: { Name: 'Zero floor' }, changed: ['Level', '9'], as: 'admin' },
  {
    path: '/site/transmitters',
    noun: 'transmitter',
    entered: { Name: 'Zonal badge' },
    changed: ['Model', 'Z-2'],
    as: 'admin',
    isKept: true
  },
  {
    path: '/site/users',
    noun: 'user',
    entered: { 'E-mail address': 'zed@example.com', 'Initial password': 'a-first-password' },
    changed: ['Name', 'Zed'],
    as: 'admin'
  }
]

/** Creates, finds, changes and deletes a record with the one list and the one form. */
const edit = async (page: Page, { path, noun, entered, changed: [label, value], isKept }: Case): Promise<void> => {
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
  if (isKept) return
  await page.getByRole('button', { name: `Delete ${name}` }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Nothing found').waitFor()
}

export const records = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('records', { buffered: true }, async (t) => {
    for (const role of ['admin', 'operator'] as const) {
      t.test(`the ${role} creates, finds, edits and deletes a record of every resource`, async (t) => {
        const { page, pageErrors } = await open(t, { as: role })
        for (const each of CASES.filter(({ as }) => as === role)) {
          await edit(page, each)
          t.pass(each.path)
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

    t.test('the order, the filters and the page of a list are in the URL', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin' })
      await page.goto('/people')
      const names = (): Promise<string[]> => page.getByRole('cell', { name: '@example.com' }).allTextContents()
      const sort = page.getByRole('button', { name: 'Person', exact: true })
      await sort.click()
      await page.waitForURL(/sort=name&order=asc/)
      await sort.click()
      await page.waitForURL(/order=desc/)
      await page.getByRole('button', { name: 'Next' }).click()
      await page.waitForURL(/page=2/)
      await page.getByText(/^21–40 of \d+$/).waitFor()
      await page.locator('[aria-busy=false]').waitFor()
      const shown = await names()
      await page.reload()
      await eventually(async () => (await names()).join() === shown.join())
      await page.getByLabel('Department').selectOption({ index: 1 })
      await page.waitForURL((url) => url.searchParams.has('departmentId') && !url.searchParams.has('page'))
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

    t.test('a photo is uploaded and removed, and a wrong file is rejected with the reason', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      await page.goto('/people')
      const row = page
        .getByRole('row')
        .filter({ has: page.getByRole('button', { name: /^Edit / }), hasNot: page.locator('img.avatar') })
      await row
        .first()
        .getByRole('button', { name: /^Edit / })
        .click()
      const dialog = page.getByRole('dialog')
      const file = { name: 'me.png', mimeType: 'image/png' }
      await dialog.getByLabel('Add photo').setInputFiles({ ...file, buffer: Buffer.from('no picture at all') })
      await page.getByRole('alert').getByText('Send a PNG or JPEG image.').waitFor()
      await dialog.getByLabel('Add photo').setInputFiles({ ...file, buffer: pngOf(2_000_001) })
      await page.getByRole('alert').getByText('The file is larger than 2 MB.').waitFor()
      await dialog.getByLabel('Add photo').setInputFiles({ ...file, buffer: pngOf(1000) })
      await dialog.locator('img.avatar').waitFor()
      await dialog.getByRole('button', { name: 'Remove' }).click()
      await dialog.locator('img.avatar').waitFor({ state: 'detached' })
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
      await page.getByLabel('Search by name').focus()
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
