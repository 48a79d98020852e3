import type { Page } from 'playwright-core'
import t from 'tap'
import { openDemoPage } from '../../helper/demo-page.js'
import { eventually } from '../../helper/eventually.js'
import { PLAN } from '../page/page-tests.js'
import { browser, stack } from './stack.js'

const playbackOf = (page: Page) => page.getByRole('region', { name: 'Playback of the last hour' })
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

t.test('the last hour of a floor can be played with the keyboard', async (t) => {
  const { page, pageErrors, findings } = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await page.goto('/live/f-1')
  await page.getByRole('button', { name: 'Play back the last hour' }).focus()
  await page.keyboard.press('Enter')
  const bar = playbackOf(page)
  await bar.getByRole('button', { name: 'Pause' }).and(page.locator(':focus')).waitFor()
  await page.getByText('Playback', { exact: true }).waitFor()
  const begin = await timeOf(page)
  await eventually(async () => secondsBetween(begin, await timeOf(page)) > 10, { label: 'time passes' })

  await page.keyboard.press('Space')
  await bar.getByRole('button', { name: 'Play' }).waitFor()
  const slider = bar.getByRole('slider', { name: 'Time' })
  await slider.focus()
  await page.keyboard.press('Home')
  const start = await timeOf(page)
  for (let press = 0; press < 6; press += 1) await page.keyboard.press('ArrowRight')
  t.equal(secondsBetween(start, await timeOf(page)), 60, 'six steps of ten seconds')
  t.match(await slider.getAttribute('aria-valuetext'), /^\d\d:\d\d:\d\d, 59 min ago$/)
  await listOf(page).getByRole('button').first().waitFor()
  t.same(await findings(), [])

  await page.keyboard.press('End')
  t.ok(secondsBetween(start, await timeOf(page)) >= 3590)
  await bar.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  await eventually(async () => secondsBetween(start, await timeOf(page)) < 3000, { label: 'it starts again' })
  await bar.getByRole('button', { name: 'Back to live' }).focus()
  await page.keyboard.press('Enter')
  await bar.waitFor({ state: 'detached' })
  await page.getByText('Live', { exact: true }).waitFor()
  t.same(pageErrors, [])
})

t.test('the last hour of a floor can be played with the mouse', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await page.goto('/live/f-1')
  await page.getByRole('button', { name: 'Play back the last hour' }).click()
  const bar = playbackOf(page)
  await bar.getByLabel('Speed').selectOption('60×')
  await bar.getByRole('button', { name: 'Pause' }).click()
  await timeOf(page)
  const slider = bar.getByRole('slider', { name: 'Time' })
  const box = await slider.boundingBox()
  if (!box) throw new Error('the slider is not visible')
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
  const middle = await timeOf(page)
  t.match(await slider.getAttribute('aria-valuetext'), /(29|30) min ago$/)
  await bar.getByRole('button', { name: 'Play' }).click()
  await eventually(async () => secondsBetween(middle, await timeOf(page)) > 30, { label: 'it continues there' })
  await bar.getByRole('button', { name: 'Back to live' }).click()
  await page.getByText('Live', { exact: true }).waitFor()
  t.same(pageErrors, [])
})

t.test('a playback that cannot be loaded is requested again', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, {
    as: 'viewer',
    expected: /Failed to load resource/
  })
  await page.goto('/live/f-1')
  await page.route('**/api/positions/tracks/**', (route) => route.abort())
  await page.getByRole('button', { name: 'Play back the last hour' }).click()
  await playbackOf(page).getByRole('alert').waitFor()
  t.equal(await playbackOf(page).getByRole('slider').isDisabled(), true)
  await page.unroute('**/api/positions/tracks/**')
  await playbackOf(page).getByRole('button', { name: 'Try again' }).click()
  await playbackOf(page).getByRole('alert').waitFor({ state: 'detached' })
  await eventually(async () => !(await playbackOf(page).getByRole('slider').isDisabled()))
  t.same(pageErrors, [])
})

t.test('the layers of the last hour', async (t) => {
  const { page, pageErrors, findings } = await openDemoPage(t, browser, stack, { as: 'viewer', colorScheme: 'light' })
  await page.goto('/live/f-1')
  await listOf(page).getByRole('button').first().waitFor()
  const layers = page.getByRole('group', { name: 'Layers' })

  await t.test('the heat map colours the places where people were', async () => {
    const red = () => pixelsOf(page, 'canvas[aria-hidden]', 'alpha > 0 && red > green + 40')
    const before = await red()
    await layers.getByLabel('Heat map of the last hour').check()
    await eventually(async () => (await red()) > before + 1000, { label: 'the heat map is drawn' })
    await layers.getByLabel('Heat map of the last hour').uncheck()
    await eventually(async () => (await red()) < before + 100, { label: 'the heat map is removed' })
  })

  await t.test('the trails show the recent paths, and can be switched with the keyboard', async (t) => {
    const painted = () => pixelsOf(page, PLAN, 'alpha > 0')
    const before = await painted()
    await layers.getByLabel('Trails').focus()
    await page.keyboard.press('Space')
    await eventually(async () => (await painted()) > 1.5 * before, { label: 'the trails are drawn' })
    t.same(await findings(), [])
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
    t.ok((await card.getByRole('list', { name: 'Stays in the last hour' }).getByRole('listitem').count()) > 3)
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
