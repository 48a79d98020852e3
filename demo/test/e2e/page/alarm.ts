import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { checkLayouts } from '../../../../test/helper/layouts.js'
import type { PageTests } from './page-tests.js'

const LAPTOP = { viewport: { width: 1440, height: 900 } }
/** For one attempt on a busy machine. */
const ATTEMPT_MS = 20_000

const choose = async (page: Page, type: string, building: string): Promise<Locator> => {
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type').selectOption({ label: type })
  await dialog.getByLabel('Building').selectOption({ label: building })
  return dialog
}
const startDrill = async (page: Page, type: string, building: string): Promise<void> => {
  await page.getByRole('button', { name: 'Start drill' }).click()
  await (await choose(page, type, building)).getByRole('button', { name: 'Start drill' }).click()
}
const raise = async (page: Page, type: string, building: string): Promise<void> => {
  await page.getByRole('button', { name: 'Raise alarm' }).click()
  const dialog = await choose(page, type, building)
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await dialog.getByRole('button', { name: 'Raise alarm now' }).click()
  await dialog.waitFor({ state: 'hidden' })
}
/** Ends the emergency that the page shows, also while people are missing. */
const endActive = async (page: Page, kind: 'drill' | 'emergency', name: string): Promise<void> => {
  await page.getByRole('button', { name: `End ${kind}` }).click()
  const dialog = page.getByRole('dialog', { name: `End ${kind}: ${name}` })
  await dialog.getByRole('button', { name: 'End now' }).click()
  const anyway = dialog.getByRole('button', { name: 'End anyway' })
  await eventually(async () => !(await dialog.isVisible()) || (await anyway.isVisible()))
  if (await dialog.isVisible()) await anyway.click()
  await dialog.waitFor({ state: 'hidden' })
}
const banner = (page: Page, text: string): Locator => page.getByRole('alert').filter({ hasText: text })

export const alarm = async (t: Test, { open, stack }: PageTests): Promise<void> => {
  await t.test('an alarm', async (t) => {
    t.test('a drill has its instruction, its muster, and a report that other users see', async (t) => {
      const opened = await open(t, { as: 'operator', ...LAPTOP })
      const { page, pageErrors } = opened
      const other = (await open(t, { as: 'viewer' })).page
      await other.goto('/emergency/past')
      await other.getByText(/^\d+–\d+ of \d+$|Nothing found/).waitFor()
      t.equal(await other.getByRole('button', { name: /^(Raise|Start d)/ }).count(), 0)

      await page.goto('/emergency')
      await startDrill(page, 'Fire', 'Workshop')
      await banner(page, 'Drill: Fire in Workshop').getByText('This is a drill. Leave the building').waitFor()
      await eventually(async () => (await page.title()) === 'DRILL: Emergency · Gatehouse')
      await checkLayouts(t, opened, 'a drill with its muster')

      // A search changes no total, so nobody disappears from the count.
      const total = page.getByRole('status').getByText(/^\d+ of \d+ safe$/)
      const people = (await total.innerText()).split(' ')[2]
      await page.getByLabel('Search the muster').fill('nobody has this name')
      await page.getByText(`0 of ${people} match.`).waitFor()
      await page.getByLabel('Search the muster').fill('')

      const missing = page.getByRole('list', { name: 'Missing' }).getByRole('button')
      // People reach the muster point meanwhile, and are then not in the list any more.
      const name = await eventually(async () => {
        const label = (await missing.first().getAttribute('aria-label')) ?? ''
        await missing.and(page.getByLabel(label, { exact: true })).focus({ timeout: ATTEMPT_MS })
        await page.keyboard.press('Enter')
        return label.replace('Mark safe: ', '')
      })
      await page.getByText(`${name} was marked safe`).waitFor()
      await page
        .getByRole('list', { name: 'Safe' })
        .getByText(/Marked safe by Olive Operator/)
        .first()
        .waitFor()

      await page.getByRole('button', { name: 'End drill' }).click()
      const end = page.getByRole('dialog', { name: 'End drill: Fire in Workshop' })
      await end.getByLabel('Outcome').selectOption('Raised by mistake')
      await end.getByRole('button', { name: 'End now' }).click()
      await end.getByText(/\d+ (still missing|without position).*End the drill anyway\?/).waitFor()
      await end.getByRole('button', { name: 'End anyway' }).click()
      await page.getByText('Drill ended: Fire in Workshop').waitFor()
      await other.getByRole('link', { name: 'Fire' }).first().click()
      await other.getByRole('heading', { name: 'Timeline' }).waitFor()
      for (const text of ['Drill: Fire in Workshop', 'Olive Operator', `${name} marked safe`])
        await other.getByText(text).first().waitFor()
      t.same(pageErrors, [])
    })

    t.test('an alarm asks for one confirmation, and ends the drill', async (t) => {
      const opened = await open(t, { as: 'operator', ...LAPTOP })
      const { page, pageErrors } = opened
      await page.goto('/emergency')
      await startDrill(page, 'Fire', 'Entire site')
      await banner(page, 'Drill: Fire in the entire site').waitFor()
      await page.getByRole('button', { name: 'Raise alarm' }).click()
      const dialog = page.getByRole('dialog', { name: 'Raise alarm' })
      await dialog.getByText('Drill: Fire in the entire site').waitFor()
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByText('Choose the type.').waitFor()
      await dialog.getByText('Choose the building.').waitFor()
      await choose(page, 'Intruder', 'Main House')
      await dialog.getByRole('button', { name: 'Continue' }).dblclick()
      await dialog.getByText('Intruder in Main House: raise a real alarm?').waitFor()
      await checkLayouts(t, opened, 'the confirmation of an alarm')
      await dialog.getByRole('button', { name: 'Raise alarm now' }).click()
      const shown = banner(page, 'Emergency: Intruder in Main House')
      await shown.getByText('Stay where you are.').waitFor()
      t.notMatch(await shown.innerText(), /leave/i)
      await banner(page, 'Drill: Fire in the entire site').waitFor({ state: 'detached' })
      await page.getByRole('heading', { name: 'Not confirmed' }).waitFor()
      await endActive(page, 'emergency', 'Intruder in Main House')
      await shown.waitFor({ state: 'detached' })
      t.same(pageErrors, [])
    })

    t.test('several alarms are all shown with their instructions, and an identical one joins', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator' })
      await page.goto('/emergency')
      await raise(page, 'Fire', 'Workshop')
      await raise(page, 'Intruder', 'Main House')
      await eventually(async () => (await banner(page, 'Emergency: ').count()) === 2)
      const texts = await banner(page, 'Emergency: ').allInnerTexts()
      t.match(texts[0], /Intruder in Main House[\s\S]*Stay where you are/, 'the most dangerous one is the first')
      t.match(texts[1], /Fire in Workshop[\s\S]*Leave the building/)
      await raise(page, 'Fire', 'Workshop')
      await page.getByText('you have joined it').waitFor()
      t.equal(await banner(page, 'Emergency: ').count(), 2)

      // Only the building that the user has set makes the banner of another one smaller, and never hides it.
      t.equal(await page.locator('.elsewhere').count(), 0)
      await page.goto('/live/f-1')
      await banner(page, 'Emergency: Fire in Workshop').waitFor()
      t.equal(await page.locator('.elsewhere').count(), 0, 'the shown floor changes nothing')
      await page.goto('/settings')
      await page.getByLabel('My building').selectOption('Main House')
      await page.locator('.alarm.elsewhere').getByText('Fire in Workshop').waitFor()
      t.equal(await page.locator('.elsewhere').count(), 1)

      await page.goto('/emergency')
      const choice = page.getByRole('navigation', { name: 'Active emergencies' })
      for (const name of ['Fire in Workshop', 'Intruder in Main House']) {
        const one = choice.getByRole('link', { name })
        // Without another one, the page shows it without a choice.
        if (name === 'Fire in Workshop') await one.click()
        await endActive(page, 'emergency', name)
        await banner(page, name).waitFor({ state: 'detached' })
      }
      t.same(pageErrors, [])
    })

    t.test('an alarm without an answer is not confirmed, and another attempt raises no second one', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: /Failed to load|WebSocket/ })
      const keys: (string | undefined)[] = []
      page.on('request', (sent) => {
        if (sent.url().endsWith('/trigger')) keys.push(sent.headers()['idempotency-key'])
      })
      await page.goto('/emergency')
      await page.getByRole('button', { name: 'Raise alarm' }).click()
      const dialog = await choose(page, 'Medical emergency', 'Workshop')
      await dialog.getByRole('button', { name: 'Continue' }).click()
      stack.signal('backend', 'SIGSTOP')
      t.teardown(() => stack.signal('backend', 'SIGCONT'))
      await dialog.getByRole('button', { name: 'Raise alarm now' }).click()
      await dialog.getByRole('alert').getByText('Not confirmed yet: use the phone.').waitFor()
      await dialog.getByRole('button', { name: 'Try again' }).click()
      stack.signal('backend', 'SIGCONT')
      await banner(page, 'Emergency: Medical emergency in Workshop').waitFor()
      await dialog.waitFor({ state: 'hidden' })
      t.equal(keys.length, 2)
      t.match(keys[0], /^[0-9a-f]{32}$/)
      t.equal(keys[1], keys[0])
      t.equal(await banner(page, 'Emergency: ').count(), 1)
      await endActive(page, 'emergency', 'Medical emergency in Workshop')
      t.same(pageErrors, [])
    })

    t.test('while the backend is frozen, positions are marked as old on every page', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'operator', expected: /Failed to load|WebSocket/ })
      await page.goto('/emergency')
      await startDrill(page, 'Fire', 'Workshop')
      await page.getByRole('heading', { name: 'Missing' }).waitFor()
      const old = page.getByRole('status').getByText(/No new positions since \d\d:\d\d:\d\d\./)
      await old.waitFor({ state: 'detached' })
      stack.signal('backend', 'SIGSTOP')
      t.teardown(() => stack.signal('backend', 'SIGCONT'))
      await old.waitFor()
      await page
        .getByText(/^Position \d+ s old$/)
        .first()
        .waitFor()
      await page.getByRole('link', { name: 'Dashboard' }).click()
      await old.waitFor()
      stack.signal('backend', 'SIGCONT')
      await old.waitFor({ state: 'detached' })
      await page.goto('/emergency')
      await endActive(page, 'drill', 'Fire in Workshop')
      t.same(pageErrors, [])
    })

    t.test('without the backend, the page says what it does not know, and recovers', async (t) => {
      const { page } = await open(t, { as: 'operator' })
      await page.goto('/settings')
      await page.getByRole('heading', { name: 'This browser' }).waitFor()
      await stack.kill('backend')
      await page
        .getByRole('alert')
        .getByText(/cannot be reached\..*Its last response is from/)
        .waitFor()
      // A page that was opened during the outage knows nothing.
      await page.goto('/emergency')
      await page.getByText('Whether there is an emergency is unknown.').first().waitFor()
      await page.getByText('an unknown number of people on site').waitFor()
      t.notMatch(await page.getByRole('main').innerText(), /No active emergency|\b0 people/)
      await stack.start('backend')
      await page.getByText('No active emergency or drill.').waitFor()
      await page.getByText('unknown').first().waitFor({ state: 'detached' })
    })
  })
}
