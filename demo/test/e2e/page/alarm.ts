import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'
import { PATIENCE_MS } from '../../../../test/helper/browser.js'
import { eventually } from '../../../../test/helper/eventually.js'
import { checkLayouts } from '../../../../test/helper/layouts.js'
import type { PageTests } from './page-tests.js'

/** For one attempt on a busy machine. */
const ATTEMPT_MS = 20_000
const LAPTOP = { viewport: { width: 1440, height: 900 } }

const choose = async (page: Page, type: string, building: string): Promise<Locator> => {
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('radio', { name: type }).check()
  await dialog.getByLabel('Building').selectOption({ label: building })
  return dialog
}

const endActive = async (page: Page, kind: 'drill' | 'emergency'): Promise<void> => {
  await page.getByRole('button', { name: `End ${kind}` }).click()
  const end = page.getByRole('dialog', { name: `End ${kind}` })
  await end.getByText(`Everyone is notified that the ${kind} is over.`).waitFor()
  await end.getByRole('button', { name: 'End now' }).click()
  await end.waitFor({ state: 'hidden' })
}

const past = (page: Page): Locator => page.getByRole('region', { name: 'Past emergencies and drills' })
const pastRows = async (page: Page): Promise<number> => {
  await past(page).getByRole('row').nth(1).waitFor()
  return past(page).getByRole('row').count()
}
/** The report of the fire that has ended since there were so many rows. Until its row appears, the first report is another one. */
const openNewestReport = async (page: Page, rowsBefore: number): Promise<void> => {
  await eventually(async () => (await past(page).getByRole('row').count()) === rowsBefore + 1)
  await past(page).getByRole('link', { name: 'Fire, report' }).first().click()
}

export const alarm = async (t: Test, { open, stack }: PageTests): Promise<void> => {
  await t.test('an alarm', async (t) => {
    t.test('a drill has its muster, its instruction in the building, and a report that other users see', async (t) => {
      const opened = await open(t, { as: 'operator', ...LAPTOP })
      const { page, pageErrors } = opened
      const other = (await open(t, { as: 'viewer' })).page
      await other.goto('/emergency')
      const rows = await pastRows(other)
      t.equal(await other.getByRole('button', { name: /Raise|Start/ }).count(), 0)

      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Start drill' }).click()
      const dialog = await choose(page, 'Fire', 'Workshop')
      await dialog.getByText('Leave the building by the nearest safe exit').waitFor()
      await checkLayouts(t, opened, 'the dialog of a drill')
      await dialog.getByRole('button', { name: 'Start drill' }).click()
      const banner = page.getByRole('alert').filter({ hasText: 'Drill: Fire in Workshop' })
      await banner.getByText('This is a drill. Leave the building').waitFor()
      // The first one is the heading of the printed roll call.
      await page
        .getByText(/^Drill: Fire in Workshop, active since/)
        .last()
        .waitFor()
      await eventually(async () => (await page.title()) === 'DRILL: Emergency · Gatehouse')
      await page.getByText(/^Elapsed \d+:\d\d$/).waitFor()

      // A search changes no total.
      const total = page.getByRole('status').getByText(/^\d+ of \d+ safe$/)
      const people = Number((await total.innerText()).split(' ')[2])
      const search = page.getByLabel('Search the muster')
      await search.fill('visitor')
      const found = page.getByRole('list', { name: 'Missing' }).getByRole('listitem').first()
      // The company and the host are below the name, the category and the place.
      await found.locator('.detail').nth(1).waitFor()
      const details = await found.locator('.detail').allInnerTexts()
      t.equal(details.length, 2, 'the place, and the company and the host')
      for (const word of ['contractor', 'ground floor', ...(details[1] ?? '').split(', host ')]) {
        await search.fill(word)
        await page.getByText(new RegExp(`^[1-9]\\d* of ${people} match\\.$`)).waitFor()
      }
      await search.fill('zzz no such person')
      await page.getByRole('status').getByText('Nobody matches “zzz no such person”.').waitFor()
      t.match(await total.innerText(), new RegExp(`of ${people} safe`))
      await page.getByRole('button', { name: 'Clear search' }).click()
      for (const [grouping, heading] of [
        ['Zone', /Workshop/],
        ['Department', /^Production/],
        ['Warden', /: (Ground|First|Second) floor, Workshop/]
      ] as const) {
        await page.getByLabel('Group by').selectOption(grouping)
        await page.getByRole('heading', { level: 3, name: heading }).first().waitFor()
      }
      await checkLayouts(t, opened, 'the muster')

      // The plan of another building has a line of information.
      await page.goto('/live/f-7')
      await page.getByRole('list', { name: 'Muster of the building' }).getByText('Missing').waitFor()
      await page.goto('/live/f-1')
      await page
        .getByRole('status')
        .getByText(/Information: drill, Fire in Workshop\. Main House is not affected/)
        .waitFor()
      t.equal(await page.getByRole('alert').filter({ hasText: 'Drill' }).count(), 0)
      t.equal(await page.getByRole('list', { name: 'Muster of the building' }).count(), 0)
      t.equal(await page.title(), 'Live plan · Gatehouse')

      await page.goto('/emergency')
      await page
        .getByRole('status')
        .getByText(/^[1-9]\d* of \d+ safe$/)
        .waitFor()
      await endActive(page, 'drill')
      await page.getByText('Drill ended').waitFor()
      await page.getByRole('button', { name: 'Start drill' }).waitFor()
      await eventually(async () => (await page.title()) === 'Emergency · Gatehouse')

      await openNewestReport(other, rows)
      await other.getByRole('heading', { name: 'Still missing at the end' }).waitFor()
      for (const text of ['Drill: Fire in Workshop', 'Olive Operator', 'At the assembly area'])
        await other.getByText(text).first().waitFor()
      const saved = other.waitForEvent('download')
      await other.getByRole('button', { name: 'CSV: people' }).click()
      t.equal((await saved).suggestedFilename(), 'emergency-people.csv')
      await other.emulateMedia({ media: 'print' })
      t.notOk(await other.getByRole('button', { name: 'Print' }).isVisible())
      t.ok(await other.getByText(/^Printed .* by /).isVisible())
      t.same(pageErrors, [])
    })

    t.test('a missing person is marked safe and found on the plan', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: /WebSocket/ })
      await page.goto('/emergency')
      const rows = await pastRows(page)
      await page.getByRole('button', { name: 'Raise alarm' }).click()
      const dialog = await choose(page, 'Fire', 'Entire site')
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByRole('button', { name: 'Raise alarm now' }).click()
      const missing = page.getByRole('list', { name: 'Missing' })
      const firstName = async (): Promise<string> => {
        const label = await missing.getByRole('button').first().getAttribute('aria-label')
        return label?.replace(/^Mark safe: (.*)$/, '$1') ?? ''
      }
      // People reach the muster point meanwhile, and are then not in the list any more.
      const name = await eventually(async () => {
        const name = await firstName()
        await missing.getByRole('button', { name: `Mark safe: ${name}`, exact: true }).click({ timeout: ATTEMPT_MS })
        return name
      })
      await page.getByText(`${name} was marked safe`).waitFor()
      const safe = page.getByRole('list', { name: 'Safe' })
      await safe.getByText('Marked safe by Olive Operator').waitFor()
      await page.getByRole('button', { name: `Undo: ${name} is safe` }).click()
      await page.getByText(`${name} is no longer marked safe`).waitFor()

      // One may have changed floors between the list and the plan.
      const isFound = async (): Promise<boolean> => {
        const name = await firstName()
        await missing.getByRole('link', { name }).click({ timeout: ATTEMPT_MS })
        await page.waitForURL(/\/live\/[^?]+\?selected=/)
        const selected = page.getByRole('button', { name, pressed: true })
        const found = await selected.waitFor({ timeout: ATTEMPT_MS }).then(
          () => true,
          () => false
        )
        await page.goBack()
        return found
      }
      await eventually(isFound, { deadlineMs: 2 * PATIENCE_MS })
      await endActive(page, 'emergency')
      await page.getByRole('button', { name: 'Start drill' }).waitFor()
      await openNewestReport(page, rows)
      await page.getByRole('cell', { name: `${name} marked safe` }).waitFor()
      await page.getByRole('cell', { name: `${name} no longer marked safe` }).waitFor()
      t.same(pageErrors, [])
    })

    t.test('an alarm asks for one confirmation, takes over from a drill, and follows its type', async (t) => {
      const opened = await open(t, { as: 'operator', ...LAPTOP, expected: /WebSocket/ })
      const { page, pageErrors } = opened
      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Start drill' }).click()
      await (await choose(page, 'Fire', 'Entire site')).getByRole('button', { name: 'Start drill' }).click()
      await page.getByRole('alert').getByText('Drill: Fire in the entire site').waitFor()

      await page.getByRole('button', { name: 'Raise alarm' }).click()
      const dialog = page.getByRole('dialog', { name: 'Raise alarm' })
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByText('Choose the type.').waitFor()
      await dialog.getByText('Choose the building.').waitFor()
      await choose(page, 'Intruder', 'Main House')
      await dialog.getByRole('button', { name: 'Continue' }).dblclick()
      await dialog.getByText('Intruder in Main House: raise a real alarm?').waitFor()
      await dialog.getByText('The drill that is running ends.').waitFor()
      await checkLayouts(t, opened, 'the confirmation of an alarm')
      await dialog.getByRole('button', { name: 'Raise alarm now' }).click()
      const banner = page.getByRole('alert').filter({ hasText: 'Emergency: Intruder in Main House' })
      await banner.getByText('Stay where you are.').waitFor()
      t.notMatch(await banner.innerText(), /leave/i)
      await page.getByRole('alert').filter({ hasText: 'Drill: Fire in the entire site' }).waitFor({ state: 'detached' })
      await page.getByRole('heading', { name: 'Not confirmed' }).waitFor()
      t.equal(await page.getByRole('heading', { name: 'Missing' }).count(), 0)
      await past(page).getByText('Ended by the alarm: Intruder in Main House.').waitFor()
      await checkLayouts(t, opened, 'an intruder alarm')
      await endActive(page, 'emergency')
      await page.getByRole('button', { name: 'Start drill' }).waitFor()
      t.same(pageErrors, [])
    })

    t.test('the instruction of a building is edited in the settings and shown in its alarm', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin', expected: /status of 400/ })
      await page.goto('/settings')
      await page.getByLabel('Building of the instructions').selectOption('Research Wing')
      const form = page.locator('form').filter({ hasText: 'Intruder' })
      await form.getByLabel('Intruder').fill('Leave the building!')
      await form.getByRole('button', { name: 'Save' }).click()
      await form.getByText('Intruder must not tell people to leave the building.').waitFor()
      await form.getByLabel('Intruder').fill('Hide in the nearest laboratory.')
      await form.getByRole('button', { name: 'Save' }).click()
      await page.getByText('Instructions of Research Wing saved').waitFor()
      // This screen is in another building.
      await page.getByLabel('Building', { exact: true }).selectOption('Workshop')
      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Raise alarm' }).click()
      const dialog = await choose(page, 'Intruder', 'Research Wing')
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByText('Hide in the nearest laboratory.').waitFor()
      await dialog.getByRole('button', { name: 'Raise alarm now' }).click()
      const information = page.getByRole('status').filter({ hasText: 'Information: Intruder in Research Wing.' })
      await information.getByText(/Your building is not affected.*Hide in the nearest laboratory\./).waitFor()
      await endActive(page, 'emergency')
      await information.waitFor({ state: 'detached' })
      t.same(pageErrors, [])
    })

    t.test('positions are marked as old on every page within seconds while the backend is frozen', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: /Failed to load|WebSocket/ })
      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Start drill' }).click()
      await (await choose(page, 'Fire', 'Workshop')).getByRole('button', { name: 'Start drill' }).click()
      await page.getByRole('heading', { name: 'Missing' }).waitFor()
      const old = page.getByRole('status').getByText(/No new positions since \d\d:\d\d:\d\d\./)
      await old.waitFor({ state: 'detached' })
      stack.signal('backend', 'SIGSTOP')
      t.teardown(() => stack.signal('backend', 'SIGCONT'))
      const frozenAt = Date.now()
      await old.waitFor()
      await page
        .getByText(/^Position \d+ s old$/)
        .first()
        .waitFor()
      // Much sooner than a request fails, which takes 30 seconds.
      t.ok(Date.now() - frozenAt < 29_000, `after ${Date.now() - frozenAt} ms`)
      await page.getByRole('link', { name: 'Dashboard' }).click()
      await page.getByRole('heading', { level: 1, name: 'Dashboard' }).waitFor()
      await old.waitFor()
      stack.signal('backend', 'SIGCONT')
      await old.waitFor({ state: 'detached' })
      await page.goto('/emergency')
      await endActive(page, 'drill')
      t.same(pageErrors, [])
    })
  })
}
