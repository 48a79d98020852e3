import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
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

export const livePlan = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('the live plan', { buffered: true }, async (t) => {
    t.test('the live plan unsubscribes from a floor when another one is shown', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      const { floors, until } = listenTo(page)
      await page.goto('/live/f-1')
      await until(() => floors.includes('f-1'))
      await page.getByLabel('Building', { exact: true }).selectOption({ index: 1 })
      await page.waitForURL('**/live/f-4')
      await until(() => floors.includes('f-4'))
      // Both floors are published once a second: four of one floor in a row mean that the other is not received any more.
      await eventually(() => floors.slice(-4).every((floor) => floor === 'f-4') && floors.at(-4))
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
      const again = page.getByRole('alert').getByRole('button', { name: 'Try again' })
      await again.waitFor()
      t.equal(await page.locator(PLAN).count(), 0)
      // The floor switch keeps the keyboard focus.
      await floor.and(page.locator(':focus')).waitFor()

      const repeated = page.waitForRequest('**/api/context/floor/f-2')
      await again.click()
      await repeated
      // The page repeats the request by itself too.
      await page.unroute('**/api/context/floor/f-2')
      await page.locator(PLAN).waitFor()
      await again.waitFor({ state: 'detached' })
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
      await search.fill('an')
      await list.getByText('Elsewhere').waitFor()
      await search.fill('trolley')
      // An asset, because a person may change floors meanwhile. The results of the search follow after those of this floor.
      const found = entries.filter({ hasText: /trolley.*\n?.+ – /i }).last()
      const [name = ''] = (await found.innerText()).split('\n')
      await entries.filter({ hasText: name }).click()
      await page.waitForURL((url) => url.pathname !== '/live/f-1')
      await list.getByRole('button', { name, pressed: true }).waitFor()
      await page.getByRole('region', { name: 'Plan', exact: true }).getByText(name).waitFor()
      t.same(pageErrors, [])
    })

    t.test('the selected marker stays visible on a phone while the list is scrolled', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer', viewport: { width: 390, height: 844 } })
      await page.goto('/live/f-1')
      const entries = page.getByRole('region', { name: 'People and assets' }).getByRole('button')
      // The list is built anew when positions arrive.
      await eventually(() =>
        entries
          .last()
          .click({ timeout: 10_000 })
          .then(() => true)
      )
      const selected = page.getByRole('region', { name: 'People and assets' }).getByRole('button', { pressed: true })
      const [name = ''] = (await selected.innerText()).split('\n')
      const label = page.getByRole('region', { name: 'Plan', exact: true }).getByText(name)
      await label.waitFor()
      await eventually(async () => {
        const box = await label.boundingBox()
        return box && box.y > 0 && box.y < 844
      })
      t.same(pageErrors, [])
    })

    t.test('the details of a person show department, place and battery, and lead to the record', async (t) => {
      const { page, context, pageErrors, findings } = await open(t, { as: 'admin' })
      const { data } = await (await context.request.get('/api/personnel/12')).json()
      await page.goto(`/live/${data.currentFloorId}?selected=${data.transmitterId}`)
      const card = page.getByRole('region', { name: data.name })
      await card.getByText(data.department, { exact: true }).waitFor()
      t.match(await card.innerText(), /within \d+\.\d m[\s\S]+\d+ %/)
      t.same(await findings(), [])
      await card.getByRole('link', { name: 'Personnel record' }).press('Enter')
      await page.waitForURL((url) => url.pathname === '/people' && url.searchParams.get('search') === data.name)
      t.same(pageErrors, [])
    })

    t.test('the stored positions of a floor are played, and the floor switch keeps the playback', async (t) => {
      const { page, pageErrors } = await open(t, { as: 'viewer' })
      await page.goto('/live/f-1')
      // Positions are kept from the start of the backend on.
      await page.getByRole('region', { name: 'People and assets' }).getByRole('button').nth(3).waitFor()
      await page.getByRole('button', { name: 'Play back' }).click()
      const bar = page.getByRole('region', { name: 'Playback', exact: true })
      await bar.getByRole('button', { name: 'Pause' }).click()
      await bar.getByRole('slider', { name: 'Time' }).press('End')
      await page.getByText(/^[1-9]\d* on this floor$/).waitFor()
      await page.getByRole('link', { name: /^First floor/ }).click()
      await page.waitForURL('**/live/f-2')
      await page.getByText(/^[1-9]\d* on this floor$/).waitFor()
      await bar.getByRole('button', { name: 'Back to live' }).click()
      await page.getByText('Live', { exact: true }).waitFor()
      t.same(pageErrors, [])
    })
  })
}

/** Every page reports the outage. */
export const lostRelay = async (t: Test, { stack, open }: PageTests): Promise<void> => {
  await t.test('the live plan reports a lost relay and recovers', async (t) => {
    const { page, pageErrors } = await open(t, { as: 'viewer', expected: /WebSocket/ })
    await page.goto('/live/f-1')
    await page.getByText('Live', { exact: true }).waitFor()

    await stack.kill('relay')
    await page.getByText('Connection lost').waitFor()
    await page.getByRole('status').filter({ hasText: 'Offline' }).waitFor()

    await page.getByRole('button', { name: 'Reconnect now' }).click()
    await page.getByText('Connection lost').waitFor()

    await stack.start('relay')
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Connection lost').waitFor({ state: 'detached' })
    await page.getByText('Last update: just now').waitFor()
    t.same(pageErrors, [])
  })
}
