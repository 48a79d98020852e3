import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { type PageTests, PLAN } from './page-tests.js'

/** The floors of received positions, in order of arrival. */
const listenTo = (page: Page) => {
  const floors: string[] = []
  const looks: (() => void)[] = []
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      for (const [, floor = ''] of String(payload).matchAll(/"channel":"floor:([^"]+)","pub"/g)) floors.push(floor)
      for (const look of looks.splice(0)) look()
    })
  )
  const until = async (isEnough: () => boolean): Promise<void> => {
    while (!isEnough()) await new Promise<void>((resolve) => looks.push(resolve))
  }
  return { floors, until }
}

export const livePlan = async (t: Test, { stack, open }: PageTests): Promise<void> => {
  await t.test('the live plan', async (t) => {
    t.test('the live plan unsubscribes from a floor when another one is shown', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      const { floors, until } = listenTo(page)
      await page.goto('/live/f-1')
      await until(() => floors.includes('f-1'))
      await page.getByLabel('Building', { exact: true }).selectOption({ index: 1 })
      await page.waitForURL('**/live/f-4')
      await until(() => floors.includes('f-4'))

      const since = floors.length
      await until(() => floors.length >= since + 3)
      t.same([...new Set(floors.slice(since))], ['f-4'])
      t.same(pageErrors, [])
    })

    t.test('the live plan shows no markers of another floor if loading fails', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', expected: /Failed to load resource/ })
      await page.goto('/live/f-1')
      await page.locator(PLAN).waitFor()
      await page.route('**/api/context/floor/f-2', (route) => route.abort())
      const floor = page.getByRole('link', { name: 'First floor' })
      await floor.focus()
      await page.keyboard.press('Enter')
      await page.waitForURL('**/live/f-2')
      await page.getByRole('alert').waitFor()
      t.equal(await page.locator(PLAN).count(), 0)
      // The floor switch keeps the keyboard focus.
      t.equal(await floor.and(page.locator(':focus')).count(), 1)

      await page.unroute('**/api/context/floor/f-2')
      await page.getByRole('button', { name: 'Try again' }).click()
      await page.locator(PLAN).waitFor()
      await page.getByRole('alert').waitFor({ state: 'detached' })
      t.same(pageErrors, [])
    })

    t.test('the live plan finds people and assets by name on all floors, and selects them there', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      await page.goto('/live/f-1')
      const list = page.getByRole('region', { name: 'People and assets' })
      const entries = list.getByRole('button')
      await entries.first().waitFor()
      const search = page.getByLabel('Search people and assets')
      await search.fill('a')
      for (const text of ['trolley', 'an']) {
        await search.fill(text)
        await list.getByText('On other floors').waitFor()
      }
      const found = entries.last()
      t.match(await found.innerText(), /\n.+ – /, 'the floor is shown')
      const [name = ''] = (await found.innerText()).split('\n')
      await found.click()
      await page.waitForURL((url) => url.pathname !== '/live/f-1')
      await list.getByRole('button', { name, pressed: true }).waitFor()
      await page.getByRole('region', { name: 'Plan', exact: true }).getByText(name).waitFor()
      t.same(pageErrors, [])
    })

    t.test('the list of the live plan does not move under the pointer', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      await page.goto('/live/f-1')
      const { floors, until } = listenTo(page)
      await page.reload()
      const list = page.getByRole('region', { name: 'People and assets' })
      await list.getByRole('button').first().waitFor()
      await list.hover()
      // Below a name is the age of a position that is not updated, which grows.
      const namesOf = async (): Promise<readonly (string | undefined)[]> =>
        (await list.getByRole('button').allInnerTexts()).map((text) => text.split('\n')[0])
      const before = await namesOf()
      const since = floors.length
      await until(() => floors.length >= since + 10)

      t.same(await namesOf(), before)
      t.same(pageErrors, [])
    })

    t.test('the selected marker stays visible on a phone while the list is scrolled', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', viewport: { width: 390, height: 844 } })
      await page.goto('/live/f-1')
      const entry = page.getByRole('region', { name: 'People and assets' }).getByRole('button').last()
      // The list is built anew when the first positions arrive.
      await eventually(() => entry.scrollIntoViewIfNeeded().then(() => true))
      const [name = ''] = (await entry.innerText()).split('\n')
      await entry.click()
      const label = page.getByRole('region', { name: 'Plan', exact: true }).getByText(name)
      await label.waitFor()
      const box = await label.boundingBox()

      t.ok(box && box.y > 0 && box.y < 844, JSON.stringify(box))
      t.same(pageErrors, [])
    })

    t.test('the overview of a building shows the people on all floors and leads to each of them', async (t) => {
      const { page, pageErrors, findings } = await open(t, { as: 'viewer' })
      await page.goto('/live/f-1')
      await page.getByRole('navigation', { name: 'Floors' }).getByRole('link', { name: 'Overview' }).click()
      await page.waitForURL('**/live/building/1')
      const floors = page
        .getByRole('main')
        .getByRole('listitem')
        .getByRole('link', { name: /floor \d+ (person|people)/ })
      await page.getByText(/^[1-9]\d* people on 3 floors$/).waitFor()
      t.match(await floors.allInnerTexts(), [/^Second floor/, /^First floor/, /^Ground floor/])
      await floors.first().locator('text').first().waitFor()
      t.same(await findings(), [])

      await page.getByLabel('Building', { exact: true }).selectOption({ index: 2 })
      await page.waitForURL('**/live/building/3')
      await page.getByRole('heading', { name: 'Workshop' }).waitFor()
      await floors.last().focus()
      await page.keyboard.press('Enter')
      await page.waitForURL('**/live/f-7')
      await page.locator(PLAN).waitFor()
      t.same(pageErrors, [])
    })

    t.test('the live plan reports a lost relay and recovers', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', expected: /WebSocket/ })
      await page.goto('/live/f-1')
      await page.getByText('Live', { exact: true }).waitFor()

      await stack.kill('relay')
      await page.getByText('Connection lost').waitFor()
      await page.getByRole('status').filter({ hasText: 'Offline' }).waitFor()

      await page.getByRole('button', { name: 'Reconnect now' }).click()
      await page.getByText('Connection lost').waitFor()

      await stack.start('relay')
      await page.getByText('Live', { exact: true }).waitFor({ timeout: 60_000 })
      await page.getByText('Connection lost').waitFor({ state: 'detached' })
      await page.getByText('Last update: just now').waitFor()
      t.same(pageErrors, [])
    })
  })
}
