import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { toPanel } from '../../../web/floor-plan/viewport.js'
import { openDemoPage } from '../../helper/demo-page.js'
import { PLAN } from '../page/page-tests.js'
import { boundsOf, opacityAt, viewOf } from '../page/plan-panel.js'
import { browser, stack } from './stack.js'

/** One person in the Server Room of f-3, one elsewhere, and one in a corner of the floor. */
const FLOOR = 'f-3'
const ROOM = { name: 'Server Room', x: 50, y: 20 }

const publish = async (): Promise<void> => {
  const data = [
    ['AC233F000040', ROOM.x, ROOM.y],
    ['AC233F000041', 10, 5],
    ['AC233F000042', 2, 24]
  ].map(([transmitterId, x, y]) => ({
    transmitterId,
    position: { x, y },
    positionMethod: 'nearest',
    floorId: FLOOR,
    zoneId: null,
    accuracy: 3,
    timestamp: Date.now()
  }))
  const request = { channel: `floor:${FLOOR}`, data: { type: 'position-batch', data } }
  const { status, body } = await stack.api('publish', request)
  if (status !== 200) throw new Error(`publishing failed: ${status} ${body}`)
}

const panelOf = (page: Page) => page.getByRole('region', { name: 'Plan', exact: true })
const listOf = (page: Page) => page.getByRole('region', { name: 'People and assets' })

/** Opens the plan with these people; all tests use the same page. */
const openPlan = async (t: Test) => {
  const opened = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await opened.page.goto(`/live/${FLOOR}`)
  await opened.page.locator(PLAN).waitFor()
  await eventually(async () => {
    await publish()
    return (await listOf(opened.page).getByRole('button').count()) >= 3
  })
  const bounds = await boundsOf(opened.page, FLOOR)
  const pixelOf = (x: number, y: number) => toPanel(viewOf(opened.page, bounds), { x, y })
  return { ...opened, bounds, pixelOf }
}

/** The number of painted pixels of the markers in a rectangle in metres. */
const paintedIn = (page: Page, from: { x: number; y: number }, to: { x: number; y: number }) =>
  page.evaluate<number>(`{
    const plan = document.querySelector('${PLAN}')
    const [width, height] = [${Math.round(to.x - from.x)}, ${Math.round(to.y - from.y)}]
    const copy = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d')
    copy.drawImage(plan, ${from.x}, ${from.y}, width, height, 0, 0, width, height)
    copy.getImageData(0, 0, width, height).data.filter((value, index) => index % 4 === 3 && value > 0).length
  }`)

t.test('people on the plan', async (t) => {
  const { page, pageErrors, findings, bounds, pixelOf } = await openPlan(t)

  await t.test('the plan fills its canvas and has a scale bar', async (t) => {
    const start = pixelOf(0, 0)
    const end = pixelOf(bounds.floor.width, bounds.floor.height)
    for (const margin of [start.x, start.y, bounds.panel.width - end.x, bounds.panel.height - end.y])
      t.ok(margin >= 15 && margin < 20, `${margin} px`)
    await page.getByRole('img', { name: /^Scale: the bar is \d+ c?m long$/ }).waitFor()
  })

  await t.test('names appear when they are ticked', async () => {
    const names = page.getByRole('group', { name: 'Layers' }).getByRole('checkbox', { name: 'Names' })
    // To the right of the marker, where nothing else is.
    const beside = () => paintedIn(page, pixelOf(11, 4.5), pixelOf(14, 5.5))
    await eventually(async () => (await beside()) > 20, { label: 'the name is drawn' })
    await names.uncheck()
    await eventually(async () => (await beside()) === 0, { label: 'the name is removed' })
    await names.check()
  })

  await t.test('an entry of the list is marked on the plan, and a marker of the plan in the list', async (t) => {
    const { x, y } = pixelOf(ROOM.x, ROOM.y)
    /** The ring around the marker in the Server Room. */
    const ring = () => paintedIn(page, { x: x - 14, y: y - 2 }, { x: x - 10, y: y + 2 })
    t.equal(await ring(), 0)
    await panelOf(page).hover({ position: { x, y } })
    const marked = listOf(page).locator('.highlighted')
    await marked.waitFor()
    const [name = ''] = (await marked.innerText()).split('\n')
    await page.mouse.move(0, 0)
    await marked.waitFor({ state: 'detached' })
    await listOf(page).getByRole('button', { name }).hover()
    await eventually(async () => (await ring()) > 0, { label: 'the ring is drawn' })
    await page.mouse.move(0, 0)
    await eventually(async () => (await ring()) === 0, { label: 'the ring is removed' })
  })

  await t.test('the selected marker has a circle of its accuracy', async (t) => {
    await panelOf(page).click({ position: pixelOf(ROOM.x, ROOM.y) })
    await page.getByRole('button', { name: 'Close details' }).waitFor()
    const inCircle = () => opacityAt(page, FLOOR, ROOM.x, ROOM.y + 2.4)
    // Published again, because old positions are dimmed.
    await eventually(
      async () => {
        await publish()
        return (await inCircle()) > 20
      },
      { label: 'the circle is drawn' }
    )
    t.equal(await opacityAt(page, FLOOR, ROOM.x, ROOM.y + 3.6), 0)
    await page.getByRole('button', { name: 'Close details' }).click()
    await eventually(async () => (await inCircle()) === 0, { label: 'the circle is removed' })
  })

  await t.test('a marker in a corner of the floor can be followed', async (t) => {
    await panelOf(page).click({ position: pixelOf(2, 24) })
    await page.getByRole('button', { name: 'Close details' }).waitFor()
    for (let press = 0; press < 3; press += 1) await page.getByRole('button', { name: 'Zoom in' }).click()
    await page.waitForURL(/view=/)
    await publish()
    t.equal(await page.getByRole('button', { name: 'Follow' }).getAttribute('aria-pressed'), 'true')
    t.same(pageErrors, [])
    await page.getByRole('button', { name: 'Fit' }).click()
    await page.waitForURL((url) => !url.searchParams.has('view'))
    await page.getByRole('button', { name: 'Close details' }).click()
  })

  await t.test('a click on a zone shows who is in it, and a double click only zooms', async (t) => {
    const position = pixelOf(ROOM.x - 5, ROOM.y)
    await panelOf(page).click({ position })
    const card = page.getByRole('region', { name: ROOM.name })
    await card.getByText('In it now').waitFor()
    await card.getByText('Earlier today').waitFor()
    await page.waitForURL(/zone=/)
    t.same(await findings(), [])
    await page.getByRole('button', { name: 'Close zone' }).click()
    await card.waitFor({ state: 'detached' })
    await panelOf(page).dblclick({ position })
    await page.waitForURL(/view=/)
    t.notMatch(page.url(), /zone=/)
  })
  t.same(pageErrors, [])
})

t.test('who is and was in a zone', async (t) => {
  const { page } = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await page.route('**/api/positions/zone/*', (route) => {
    const person = { entityType: 'employee', isFirstAider: false, firstAt: new Date().toISOString() }
    const at = new Date().toISOString()
    const people = [
      { ...person, transmitterId: 'AC233F000040', name: 'Ada Here', isHere: true, lastAt: at, seconds: 754 },
      { ...person, transmitterId: 'AC233F000041', name: 'Ben Gone', isHere: false, lastAt: at, seconds: 61 }
    ]
    return route.fulfill({ json: { success: true, data: { id: '1', name: 'Corridor', people } } })
  })
  await page.goto('/live/f-1?zone=1')
  const card = page.getByRole('region', { name: 'Corridor MH-0' })
  await card.getByRole('button', { name: /^Ada Here 12 min$/ }).waitFor()
  await card.getByRole('button', { name: /^Ben Gone 1 min, until \d\d:\d\d:\d\d$/ }).click()
  await page.getByRole('button', { name: 'Close details' }).waitFor()
  await page.waitForURL(/selected=AC233F000041/)
  await page.getByRole('button', { name: 'Close details' }).click()
  await card.getByText('In it now').waitFor()
})
