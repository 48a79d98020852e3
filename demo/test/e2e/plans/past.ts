import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { PLAN } from '../page/page-tests.js'
import { listOf, opacityAt, openPage } from './stack.js'

const barOf = (page: Page) => page.getByRole('region', { name: 'Playback', exact: true })
const MINUTE = 60_000

/** Opens a floor on which one person walks 14 m to the east in the last 14 minutes, with known positions every minute. */
const openFloor = async (t: Test, path = '/live/f-4') => {
  const opened = await openPage(t, { expected: /Failed to load resource/ })
  const { page } = opened
  const answer = { fails: false }
  await page.route('**/api/positions/tracks/f-4?*', (route) => {
    if (answer.fails) return route.abort()
    const { searchParams } = new URL(route.request().url())
    const [from, to] = ['from', 'to'].map((name) => new Date(Number(searchParams.get(name))).toISOString())
    const points = Array.from({ length: 15 }, (_, minute) => [minute * MINUTE, 10 + minute, 5, null])
    return route.fulfill({ json: { data: { from, to, tracks: [{ transmitterId: 'AC233F000040', points }] } } })
  })
  await page.goto(path)
  await page.locator(PLAN).waitFor()
  return { ...opened, answer }
}

t.test('the last 15 minutes of a floor are played with the keyboard', async (t) => {
  const { page, answer, pageErrors, findings } = await openFloor(t)
  await page.getByRole('button', { name: 'Play back' }).press('Enter')
  const bar = barOf(page)
  await bar.getByRole('button', { name: 'Pause' }).and(page.locator(':focus')).press('Enter')
  await page.getByRole('status').getByText('Playback', { exact: true }).waitFor()
  const slider = bar.getByRole('slider', { name: 'Time' })
  await slider.press('Home')
  const start = await slider.getAttribute('aria-valuetext')
  for (let press = 0; press < 20; press += 1) await slider.press('ArrowRight')
  await eventually(async () => (await opacityAt(page, 'f-4', 15, 5)) === 255, { label: 'five minutes later' })
  t.equal(await opacityAt(page, 'f-4', 10, 5), 0)
  t.same(await findings(), [])

  // The markers move while it plays.
  await bar.getByLabel('Speed').selectOption('60×')
  await bar.getByRole('button', { name: 'Play' }).press('Enter')
  await eventually(async () => (await opacityAt(page, 'f-4', 15, 5)) === 0, { label: 'it plays' })
  await bar.getByRole('button', { name: 'Play' }).waitFor()
  t.not(await slider.getAttribute('aria-valuetext'), start, 'it stops at the end')
  await bar.getByText('No positions are known for this floor at this time.').waitFor()

  answer.fails = true
  await bar.getByRole('button', { name: 'Back to live' }).press('Enter')
  await page.getByRole('button', { name: 'Play back' }).and(page.locator(':focus')).press('Enter')
  answer.fails = false
  await bar.getByRole('alert').waitFor()
  await bar.getByRole('button', { name: 'Try again' }).click()
  await listOf(page).getByRole('button').first().waitFor()
  t.same(pageErrors, [])
})

t.test('the selected marker has a trail', async (t) => {
  const { page, pageErrors } = await openFloor(t, '/live/f-4?selected=AC233F000040')
  await eventually(async () => (await opacityAt(page, 'f-4', 20.5, 5)) > 100, { label: 'the trail is drawn' })
  const [older, newer] = [await opacityAt(page, 'f-4', 11.5, 5), await opacityAt(page, 'f-4', 22.5, 5)]
  t.ok(older > 0 && older < newer, `${older} and ${newer}: it fades`)
  t.equal(await opacityAt(page, 'f-4', 26, 5), 0)
  t.same(pageErrors, [])
})
