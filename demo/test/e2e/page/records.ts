import type { Locator, Page, Route } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { holdRequests } from '../../../../test/helper/window.js'
import { pngOf } from '../../helper/demo-page.js'
import { CLIENT_ERRORS, type PageTests } from './page-tests.js'

/** The rows of people without a photo. */
const withoutPhoto = (page: Page): Locator =>
  page
    .getByRole('row')
    .filter({ has: page.getByRole('button', { name: /^Edit / }), hasNot: page.locator('img.avatar') })

export const records = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('personnel', { buffered: true }, async (t) => {
    t.test('a person is created, edited and deleted, with errors beside their fields', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/personnel')
      await page.getByRole('button', { name: 'Add person' }).click()
      const form = page.getByRole('dialog')
      // Long text without spaces must not hide the buttons.
      const lastName = 'Zulu'.repeat(40)
      const cutOff = (box: Locator): Promise<boolean> =>
        box.evaluate((element: unknown) => {
          const { scrollWidth, clientWidth } = element as Record<'scrollWidth' | 'clientWidth', number>
          return scrollWidth > clientWidth
        })
      await form.getByLabel('First name').fill('Zyta')
      await form.getByLabel('Last name').fill(lastName)
      await form.getByLabel('E-mail address').fill('no address')
      await form.getByRole('button', { name: 'Create' }).click()
      const email = form.getByLabel('E-mail address')
      await form.locator('[aria-invalid=true]').waitFor()
      t.equal(await email.getAttribute('aria-invalid'), 'true')
      t.equal(await form.locator(`[id="${await email.getAttribute('aria-describedby')}"]`).count(), 1)
      await email.and(page.locator(':focus')).waitFor()
      await form.getByText('E-mail address does not have the right form.').waitFor()

      await email.fill('zyta@example.com')
      await form.getByRole('button', { name: 'Create' }).click()
      await page.getByText(`Zyta ${lastName} was added`).waitFor()

      await page.getByLabel('Search by name').fill('zyta')
      await page.getByRole('button', { name: 'Edit Zyta Zulu' }).click()
      t.equal(await cutOff(form), false)
      const jobTitle = 'Librarian'.repeat(20)
      await form.getByLabel('Job title').fill(jobTitle)
      await form.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('cell', { name: jobTitle }).waitFor()
      t.equal(await cutOff(page.locator('.table-box')), false)

      await page.getByRole('button', { name: 'Delete Zyta Zulu' }).click()
      t.equal(await cutOff(form), false)
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    })

    t.test('two users who edit one person choose what to keep, and a changed form asks before it closes', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      const other = (await open(t, { as: 'admin' })).page
      await page.goto('/personnel')
      await page.getByRole('button', { name: 'Add person' }).click()
      const form = page.getByRole('dialog')
      await form.getByLabel('First name').fill('Connie')
      await form.getByLabel('Last name').fill('Conflict')
      // A click outside of the input must not lose it.
      page.once('dialog', (asked) => void asked.dismiss())
      await page.keyboard.press('Escape')
      t.equal(await form.getByLabel('First name').inputValue(), 'Connie')
      await form.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Connie Conflict was added').waitFor()

      for (const one of [page, other]) {
        await one.goto('/personnel?search=conflict')
        await one.getByRole('button', { name: 'Edit Connie Conflict' }).click()
      }
      await other.getByRole('dialog').getByLabel('Job title').fill('Theirs')
      await other.getByRole('dialog').getByLabel('Phone').fill('123')
      await other.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
      await other.getByRole('cell', { name: 'Theirs' }).waitFor()
      await form.getByLabel('Job title').fill('Mine')
      await form.getByLabel('Last name').fill('Conflict-Smith')
      await form.getByRole('button', { name: 'Save' }).click()
      await form.getByRole('alert').getByText('Alex Admin has changed this record while you edited it.').waitFor()
      const title = form.getByRole('group', { name: 'Job title' })
      t.ok(await title.getByRole('radio', { name: 'Your change: Mine' }).isChecked())
      t.ok(await form.getByRole('group', { name: 'Phone' }).getByRole('radio', { name: 'Changed to: 123' }).isChecked())
      t.equal(await form.getByRole('group').count(), 2, 'only the fields that the other user has changed')
      await title.getByRole('radio', { name: 'Changed to: Theirs' }).check()
      await form.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Connie Conflict-Smith was saved').waitFor()
      await page.getByRole('cell', { name: 'Theirs' }).waitFor()

      await page.getByRole('button', { name: 'Delete Connie Conflict-Smith' }).click()
      await form.getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    })

    t.test('the deletion of a floor names its building and counts what goes with it', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin' })
      await page.goto('/floors')
      await page
        .getByRole('button', { name: /^Delete .*Ground floor/ })
        .first()
        .click()
      const dialog = page.getByRole('dialog')
      await dialog
        .getByText(
          /Ground floor in Main House will be deleted\. \d+ zones and \d+ receivers will be deleted too\..*there now/
        )
        .waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      t.same(pageErrors, [])
    })

    t.test('a transmitter is assigned to a new person and becomes available with the deletion', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/personnel')
      await page.getByRole('button', { name: 'Add person' }).click()
      const form = page.getByRole('dialog')
      await form.getByLabel('First name').fill('Tessa')
      await form.getByLabel('Last name').fill('Tagged')
      const option = form
        .getByLabel('Transmitter')
        .getByRole('option', { name: /^Badge/ })
        .first()
      const transmitterId = await option.getAttribute('value')
      await form.getByLabel('Transmitter').selectOption(transmitterId)
      await form.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Tessa Tagged was added').waitFor()

      await page.goto(`/transmitters?search=${transmitterId?.replace(/(..)(?=.)/g, '$1:')}`)
      await page.getByRole('cell', { name: 'Tessa Tagged' }).waitFor()
      await page.goto('/personnel?search=tagged')
      await page.getByRole('button', { name: 'Delete Tessa Tagged' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    })

    t.test('an asset is created and edited', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/inventory')
      await page.getByRole('button', { name: 'Add asset' }).click()
      const form = page.getByRole('dialog')
      await form.getByLabel('Name').fill('Zoom lens')
      await form.getByRole('button', { name: 'Create' }).click()
      await page.getByText('Zoom lens was added').waitFor()
      await page.getByLabel('Search by name').fill('zoom lens')
      await page.getByRole('button', { name: 'Edit Zoom lens' }).click()
      await form.getByLabel('Category').fill('optics')
      await form.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('cell', { name: 'optics' }).waitFor()
      await page.getByRole('button', { name: 'Delete Zoom lens' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Nothing found').waitFor()
      t.same(pageErrors, [])
    })

    t.test('the order, the filters and the page of a list are in the URL', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin' })
      await page.goto('/personnel')
      const firstName = page.getByRole('row').nth(1).getByRole('cell').first()
      /** Clicks a button and resolves when the list shows the rows of the request that follows. */
      const clickAndLoad = async (name: string, request: RegExp): Promise<void> => {
        const responded = page.waitForResponse(request)
        await page.getByRole('button', { name, exact: true }).click()
        await responded
        await page.locator('[aria-label=Personnel][aria-busy=false]').waitFor()
      }
      await clickAndLoad('Person', /order=asc/)
      await page.waitForURL(/sort=name&order=asc/)
      const ascending = await firstName.textContent()
      await clickAndLoad('Person', /order=desc/)
      await page.waitForURL(/order=desc/)
      t.not(await firstName.textContent(), ascending)
      await clickAndLoad('Next', /offset=20/)
      await page.waitForURL(/page=2/)
      const links = await page.getByRole('cell', { name: '@example.com' }).allTextContents()
      await page.reload()
      await page.getByText(/^21–40 of \d+$/).waitFor()
      await eventually(async () => {
        const now = await page.getByRole('cell', { name: '@example.com' }).allTextContents()
        return now.join() === links.join()
      })
      await page.getByLabel('Department').selectOption({ index: 1 })
      await page.waitForURL(/departmentId=/)
      await page.getByText(/^1–\d+ of \d+$/).waitFor()
      t.same(pageErrors, [])
    })

    t.test(
      'saving is reported although the dialog was closed, and a deletion that fails loads its consequences again',
      async (t) => {
        const { page, pageErrors } = await open(t, { as: 'operator', expected: /Failed to load/ })
        await page.goto('/personnel')
        await page.getByLabel('Search by name').fill('yves')
        await page.getByText('Nothing found').waitFor()
        await page.getByRole('button', { name: 'Add person' }).click()
        await page.getByRole('dialog').getByLabel('First name').fill('Yves')
        const release = await holdRequests(page, '**/api/personnel')
        const requested = page.waitForRequest('**/api/personnel')
        await page.keyboard.press('Enter')
        await requested
        await page.keyboard.press('Escape')
        await page.getByRole('dialog').waitFor({ state: 'hidden' })
        release()
        await page.getByText('Yves was added').waitFor()

        const releaseConsequences = await holdRequests(page, '**/api/personnel/*/deletion')
        const confirmed = async (): Promise<void> => {
          const cancelled = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/deletion'))
          await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
          await cancelled
        }
        const requestedConsequences = page.waitForRequest('**/deletion')
        await page.getByRole('button', { name: 'Delete Yves' }).click()
        await requestedConsequences
        const fail = (route: Route): Promise<void> =>
          route.request().method() === 'DELETE' ? route.abort() : route.fallback()
        await page.route('**/api/personnel/*', fail)
        const requestedAgain = page.waitForRequest('**/deletion')
        await confirmed()
        await requestedAgain
        await page.unroute('**/api/personnel/*', fail)
        await confirmed()
        await page.getByText('Nothing found').waitFor()
        releaseConsequences()
        t.same(pageErrors, [])
      }
    )

    t.test('a photo upload shows its progress', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/personnel')
      const edit = withoutPhoto(page)
        .first()
        .getByRole('button', { name: /^Edit / })
      const name = (await edit.getAttribute('aria-label'))?.slice('Edit '.length) ?? ''
      await edit.click()
      const dialog = page.getByRole('dialog')
      const network = await page.context().newCDPSession(page)
      const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 30_000 }
      await network.send('Network.emulateNetworkConditions', slow)

      const stored = page.waitForResponse('**/photo')
      await dialog
        .getByLabel('Add photo')
        .setInputFiles({ name: 'me.png', mimeType: 'image/png', buffer: pngOf(600_000) })
      const bar = dialog.getByRole('progressbar', { name: 'Upload' })
      await bar.waitFor()
      await dialog.getByText(/^[1-9]\d? %$/).waitFor()
      await network.send('Network.emulateNetworkConditions', { ...slow, uploadThroughput: -1 })
      t.equal((await stored).status(), 201)
      await bar.waitFor({ state: 'detached' })
      await dialog.locator('img.avatar').waitFor()
      // The list shows the photo too; its requests after the removal get 404.
      const inList = page.getByRole('row').filter({ hasText: name }).locator('img.avatar').first()
      // The tests are compiled without the types of the DOM.
      await inList.evaluate((image: unknown) => (image as { decode(): Promise<void> }).decode())

      await dialog.getByRole('button', { name: 'Remove' }).click()
      await dialog.locator('img.avatar').waitFor({ state: 'detached' })
      t.same(pageErrors, [])
    })

    t.test('a rejected photo is reported with the reason', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
      await page.goto('/personnel')
      await withoutPhoto(page)
        .last()
        .getByRole('button', { name: /^Edit / })
        .click()
      const file = { name: 'me.png', mimeType: 'image/png', buffer: Buffer.from('no picture at all') }
      await page.getByRole('dialog').getByLabel('Add photo').setInputFiles(file)
      await page.getByRole('alert').getByText('Send a PNG, JPEG or WebP image.').waitFor()
      await page
        .getByRole('dialog')
        .getByLabel('Add photo')
        .setInputFiles({ ...file, buffer: pngOf(2_000_001) })
      await page.getByRole('alert').getByText('The file is larger than 2 MB.').waitFor()
      t.same(pageErrors, [])
    })

    t.test('personnel can be exported', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/personnel')
      for (const [format, name] of [
        ['CSV', 'personnel.csv'],
        ['PDF', 'personnel.pdf']
      ] as const) {
        const download = page.waitForEvent('download')
        await page.getByRole('button', { name: format }).click()
        t.equal((await download).suggestedFilename(), name)
      }
      t.same(pageErrors, [])
    })

    t.test('a failed export is reported and saves no file', async (t) => {
      const expected = /Failed to load resource: the server responded with a status of 504/
      const { page, pageErrors } = await open(t, { as: 'operator', expected })
      await page.goto('/personnel')
      const failure = { code: 'BACKEND_TIMEOUT', error: 'The service behind this page did not respond in time.' }
      await page.route('**/api/personnel/export/csv*', (route) => route.fulfill({ status: 504, json: failure }))
      page.on('download', () => t.fail('a file was saved'))
      await page.getByRole('button', { name: 'CSV' }).click()
      await page.getByText(`Not exported. ${failure.error}`).waitFor()
      t.same(pageErrors, [])
    })
  })

  await t.test('administration', { buffered: true }, async (t) => {
    const admin = await open(t, { as: 'admin', expected: CLIENT_ERRORS })
    const { page, pageErrors } = admin
    const dialog = page.getByRole('dialog')

    t.test('an admin creates, resets and deletes accounts, but not their own', async (t) => {
      await page.goto('/users')
      await page.getByRole('button', { name: 'Add user' }).click()
      await dialog.getByLabel('E-mail address').fill('new@example.com')
      await dialog.getByLabel('Role').selectOption('operator')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await dialog.getByText('Initial password must not be empty.').waitFor()
      await dialog.getByLabel('Initial password').fill('a-first-password')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await page.getByText('new@example.com was added').waitFor()

      t.equal(await page.getByRole('button', { name: 'Reset the password of admin@example.com' }).count(), 0)
      await page.getByRole('button', { name: 'Reset the password of new@example.com' }).click()
      await dialog.getByLabel('New password').fill('short')
      await dialog.getByRole('button', { name: 'Reset' }).click()
      await dialog.getByText('New password must have at least 8 characters.').waitFor()
      await dialog.getByLabel('New password').fill('a-second-password')
      await dialog.getByRole('button', { name: 'Reset' }).click()
      await page.getByText('The password of new@example.com was reset').waitFor()

      await page.getByRole('button', { name: 'Delete admin@example.com' }).click()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await dialog.getByRole('alert').getByText('You cannot delete your own account.').waitFor()
      await dialog.getByRole('button', { name: 'Cancel' }).click()
      await page.getByRole('button', { name: 'Delete new@example.com' }).click()
      await dialog.getByRole('button', { name: 'Delete' }).click()
      await page.getByText('new@example.com was deleted').waitFor()
    })

    t.test('the live plan shows an uploaded floor plan', async (t) => {
      const { request } = page.context()
      const { csrfToken } = await (await request.get('/api/auth/csrf-token')).json()
      const sent = await request.post('/api/floors/f-9/upload', {
        headers: { 'x-csrf-token': csrfToken },
        multipart: { file: { name: 'p.png', mimeType: 'image/png', buffer: pngOf(0) } }
      })
      t.ok(sent.ok(), String(sent.status()))
      const shown = page.waitForResponse('**/api/floors/f-9/plan?v=*')
      await page.goto('/live/f-9')
      t.equal((await shown).headers()['content-type'], 'image/png')
      t.same(pageErrors, [])
    })

    t.test('an admin changes settings within their limits', async (t) => {
      await page.goto('/settings')
      const general = page.locator('section', { has: page.getByRole('heading', { name: 'General' }) })
      const minutes = general.getByLabel('Session timeout (minutes)')
      await minutes.fill('1')
      await general.getByRole('button', { name: 'Save' }).click()
      await general.getByText('Session timeout (minutes) must be at least 5.').waitFor()
      await minutes.fill('480')
      await general.getByRole('button', { name: 'Save' }).click()
      await page.getByText('General saved').waitFor()
      await page.reload()
      await minutes.waitFor()
      t.equal(await minutes.inputValue(), '480')
      t.same(pageErrors, [])
    })

    t.test('the page asks before unsaved settings are lost', async (t) => {
      await page.goto('/settings')
      await page.getByLabel('Organization name').fill('Another name')
      const questions: string[] = []
      page.once('dialog', (dialog) => {
        questions.push(dialog.message())
        void dialog.dismiss()
      })
      await page.getByRole('link', { name: 'Dashboard' }).click()
      await eventually(() => questions.length > 0)
      t.match(page.url(), '/settings')
      page.once('dialog', (dialog) => void dialog.accept())
      await page.getByRole('link', { name: 'Dashboard' }).click()
      await page.waitForURL('**/dashboard')
      t.same(questions, ['Leave the page? Unsaved changes are lost.'])
      t.same(pageErrors, [])
    })
  })
}
