import type { Page } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { openDemoPage } from '../../helper/demo-page.js'
import { PLAN } from '../page/page-tests.js'
import { browser, stack } from './stack.js'

const playbackOf = (page: Page) => page.getByRole('region', { name: 'Playback', exact: true })
const listOf = (page: Page) => page.getByRole('region', { name: 'People and assets' })

/** The shown time of the playback in seconds after midnight, once it has loaded. */
const timeOf = async (page: Page): Promise<number> => {
  const text = await playbackOf(page).locator('strong').filter({ hasText: ':' }).innerText()
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number)
  return hours * 3600 + minutes * 60 + seconds
}
/** Across midnight too. */
const secondsBetween = (start: number, end: number): number => (end - start + 86_400) % 86_400

/** The number of pixels of a canvas for which the condition on red, green, blue and alpha holds. */
const pixelsOf = async (page: Page, canvas: string, condition: string): Promise<number> => {
  await page.locator(canvas).first().waitFor({ state: 'attached' })
  return page.evaluate<number>(`{
    const { width, height } = document.querySelector('${canvas}')
    const copy = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d')
    copy.drawImage(document.querySelector('${canvas}'), 0, 0)
    const { data } = copy.getImageData(0, 0, width, height)
    let count = 0
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue, alpha] = data.subarray(at, at + 4)
      if (${condition}) count += 1
    }
    count
  }`)
}

t.test('the stored days of a floor are played with the keyboard', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await page.goto('/live/f-1')
  await page.getByRole('button', { name: 'Play back' }).focus()
  await page.keyboard.press('Enter')
  const bar = playbackOf(page)
  await bar.getByRole('button', { name: 'Pause' }).and(page.locator(':focus')).waitFor()
  await page.getByText('Playback', { exact: true }).waitFor()
  const begin = await timeOf(page)
  await eventually(async () => secondsBetween(begin, await timeOf(page)) > 60, { label: 'time passes' })

  await page.keyboard.press('Space')
  await bar.getByRole('button', { name: 'Play' }).waitFor()
  const slider = bar.getByRole('slider', { name: 'Time' })
  await slider.focus()
  await page.keyboard.press('Home')
  const start = await timeOf(page)
  for (let press = 0; press < 6; press += 1) await page.keyboard.press('ArrowRight')
  t.equal(secondsBetween(start, await timeOf(page)), 360, 'six steps of one minute')
  t.match(await slider.getAttribute('aria-valuetext'), /^\d+ \w+ \d{4}, \d\d:\d\d:\d\d$/)

  await page.keyboard.press('End')
  await listOf(page).getByRole('button').first().waitFor()
  const end = await timeOf(page)
  await bar.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  const isWithinLastHour = async (): Promise<boolean> => {
    const seconds = secondsBetween(await timeOf(page), end)
    return seconds > 1800 && seconds <= 3600
  }
  await eventually(isWithinLastHour, { label: 'it starts again an hour before the end' })
  await bar.getByRole('button', { name: 'Back to live' }).focus()
  await page.keyboard.press('Enter')
  await bar.waitFor({ state: 'detached' })
  await page.getByText('Live', { exact: true }).waitFor()
  t.same(pageErrors, [])
})

t.test('a playback of yesterday has the counts of that time, its time in the URL, and Back closes it', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await page.goto('/live/f-1')
  await page.getByRole('button', { name: 'Play back' }).click()
  const bar = playbackOf(page)
  await bar.getByLabel('Speed').selectOption('300×')
  await bar.getByRole('button', { name: 'Pause' }).click()
  const atInUrl = () => new URL(page.url()).searchParams.get('at') ?? ''
  const today = Date.parse(atInUrl())
  const day = 24 * 60 * 60_000
  const yesterday = new Date(today - day)
  const two = (value: number): string => String(value).padStart(2, '0')
  await bar
    .getByLabel('Date')
    .fill(`${yesterday.getFullYear()}-${two(yesterday.getMonth() + 1)}-${two(yesterday.getDate())}`)
  await bar.getByLabel('Date').blur()
  await eventually(() => Math.abs(today - day - Date.parse(atInUrl())) < 2 * 60 * 60_000, {
    label: 'the URL has the day'
  })

  // The counts of the floors are those of the stored positions at that time.
  const counts = await page
    .context()
    .request.get(`/api/positions/people?at=${Math.floor(Date.parse(atInUrl()) / 600_000) * 600_000}`)
  const [{ people }] = (await counts.json()).data.filter((one: { floorId: string }) => one.floorId === 'f-2')
  await page.getByRole('link', { name: `First floor ${people}`, exact: true }).waitFor()
  const shared = page.url()
  await page.getByRole('link', { name: /^First floor/ }).click()
  await page.waitForURL((url) => url.pathname === '/live/f-2' && url.searchParams.has('at'))
  await listOf(page).getByRole('button').first().waitFor()

  await page.goto(shared)
  await bar.getByRole('button', { name: 'Play' }).waitFor()
  t.equal(page.url(), shared, 'a link opens the same time, paused')
  await page.goto('/live/f-1')
  await page.getByRole('button', { name: 'Play back' }).click()
  await bar.waitFor()
  await page.goBack()
  await bar.waitFor({ state: 'detached' })
  t.match(page.url(), /\/live\/f-1$/)
  t.same(pageErrors, [])
})

t.test('a playback that cannot be loaded is requested again', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, {
    as: 'viewer',
    expected: /Failed to load resource/
  })
  await page.goto('/live/f-1')
  await page.route('**/api/positions/tracks/**', (route) => route.abort())
  await page.getByRole('button', { name: 'Play back' }).click()
  await playbackOf(page).getByRole('alert').waitFor()
  const repeated = page.waitForRequest('**/api/positions/tracks/**')
  await playbackOf(page).getByRole('button', { name: 'Try again' }).click()
  await repeated
  // The page repeats the request by itself too.
  await page.unroute('**/api/positions/tracks/**')
  await playbackOf(page).getByRole('alert').waitFor({ state: 'detached' })
  await listOf(page).getByRole('button').first().waitFor()
  t.same(pageErrors, [])
})

t.test('the layers of the history', async (t) => {
  const { page, pageErrors, findings } = await openDemoPage(t, browser, stack, { as: 'viewer', colorScheme: 'light' })
  await page.goto('/live/f-1')
  await listOf(page).getByRole('button').first().waitFor()
  const layers = page.getByRole('group', { name: 'Layers' })

  await t.test('the heat map colours the places where people were, and has a scale with values', async (t) => {
    const red = () => pixelsOf(page, 'canvas[aria-hidden]', 'alpha > 0 && red > green + 40')
    const before = await red()
    await layers.getByLabel('Heat map').check()
    const heated = await eventually(
      async () => {
        const count = await red()
        return count > before + 500 ? count : 0
      },
      { label: 'the heat map is drawn' }
    )
    const scale = page.getByRole('group', { name: 'Scale of the heat map' })
    t.match(await scale.innerText(), /0:00\s+\d+:\d\d\s/)
    await page.getByRole('region', { name: 'Plan', exact: true }).hover({ position: { x: 200, y: 100 } })
    await scale.getByText(/^Here: \d/).waitFor()
    t.same(await findings(), [])
    await layers.getByLabel('Heat map').uncheck()
    await eventually(async () => (await red()) < heated - 400, { label: 'the heat map is removed' })
  })

  await t.test('the trail is that of the selected marker, or none', async () => {
    await layers.getByLabel('Trail').focus()
    await page.keyboard.press('Space')
    await page.getByText('Select a person or an asset to see the way').waitFor()
    const moved = await eventually(
      async () => {
        const { data } = await (await page.context().request.get('/api/positions/tracks/f-1?minutes=10')).json()
        return data.tracks.find(({ points }: { points: readonly number[][] }) => points.length > 20)
      },
      { label: 'somebody walks' }
    )
    // The purple of the start of a trail, which visitors have nearly too.
    const purple = () => pixelsOf(page, PLAN, 'alpha > 200 && blue > red + 25 && blue > green + 50')
    const before = await purple()
    await page.goto(`/live/f-1?selected=${moved.transmitterId}`)
    await page.getByText('way not known').waitFor()
    await eventually(async () => (await purple()) > before + 100, { label: 'the trail is drawn' })
  })
  t.same(pageErrors, [])
})

t.test('the details of a marker', async (t) => {
  const { page, pageErrors, findings } = await openDemoPage(t, browser, stack, { as: 'admin' })

  await t.test('the details of a person show department, zone, battery and the stays of the last hour', async (t) => {
    const { data } = await (await page.context().request.get('/api/personnel/12')).json()
    await page.goto(`/live/${data.currentFloorId}?selected=${data.transmitterId}`)
    const card = page.getByRole('region', { name: data.name })
    await card.getByText(data.department, { exact: true }).waitFor()
    t.match(await card.innerText(), /(since \d\d:\d\d:\d\d|for more than an hour)[\s\S]+\d+ %/)
    await card.getByText(/^Last hour \(\d+ stays\)$/).click()
    await card.getByRole('list', { name: 'Stays in the last hour' }).getByRole('listitem').nth(3).waitFor()
    t.same(await findings(), [])

    await card.getByRole('link', { name: 'Personnel record' }).focus()
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === '/personnel' && url.searchParams.get('search') === data.name)
    await page.getByRole('cell', { name: data.email }).waitFor()
  })

  await t.test('the details of an asset are closed with the keyboard', async () => {
    const { data } = await (await page.context().request.get('/api/assets/3')).json()
    await page.goto(`/live/${data.currentFloorId}?selected=${data.transmitterId}`)
    const card = page.getByRole('region', { name: data.name })
    await card.getByText('for more than an hour').waitFor()
    await card.getByRole('button', { name: 'Close details' }).focus()
    await page.keyboard.press('Enter')
    await card.waitFor({ state: 'detached' })
  })
  t.same(pageErrors, [])
})
