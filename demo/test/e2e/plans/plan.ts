import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { holdRequests } from '../../../../test/helper/window.js'
import { CLOSE_UP } from '../../../web/floor-plan/arrangement.js'
import { type Bounds, centreOn, toFloor, toPanel, type View, zoomLimits } from '../../../web/floor-plan/viewport.js'
import { type DemoPageOptions, openDemoPage } from '../../helper/demo-page.js'
import { PLAN } from '../page/page-tests.js'
import { boundsOf, opacityAt, viewOf } from '../page/plan-panel.js'
import { browser, stack } from './stack.js'

type Positions = Readonly<Record<string, readonly [number, number]>>

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }
const LARGE = { viewport: { width: 2560, height: 1300 } }

const publish = async (floorId: string, positions: Positions): Promise<void> => {
  const data = Object.entries(positions).map(([transmitterId, [x, y]]) => {
    return { transmitterId, position: { x, y }, positionMethod: 'nearest', floorId, timestamp: Date.now() }
  })
  const { status, body } = await stack.api('publish', {
    channel: `floor:${floorId}`,
    data: { type: 'position-batch', data }
  })
  if (status !== 200) throw new Error(`publishing failed: ${status} ${body}`)
}

/**
 * Opens the plan of a floor and publishes the positions until they are there. Markers do not glide. Each test with positions
 * has its own floor, because the relay keeps the last ones.
 */
const openPlan = async (t: Test, floorId: string, positions: Positions = {}, options: DemoPageOptions = {}) => {
  const opened = await openDemoPage(t, browser, stack, { as: 'viewer', ...options })
  await opened.page.goto(`/live/${floorId}`)
  await opened.page.locator(PLAN).waitFor()
  // The switch of the floors is above the plan, which moves when the switch appears.
  await opened.page.getByRole('link', { name: /^Overview/ }).waitFor()
  const count = Object.keys(positions).length
  await eventually(async () => {
    if (count === 0) return true
    await publish(floorId, positions)
    return (await opened.page.getByText(`${count} on this floor`).count()) === 1
  })
  return { ...opened, bounds: await boundsOf(opened.page, floorId) }
}

const panelOf = (page: Page) => page.getByRole('region', { name: 'Plan', exact: true })
const viewInUrl = (page: Page): string | null => new URL(page.url()).searchParams.get('view')

/** Resolves when the view of the URL is as expected. The URL has rounded numbers. */
const viewBecomes = (page: Page, bounds: Bounds, expected: Partial<View>): Promise<View> =>
  eventually(
    () => {
      const view = viewOf(page, bounds)
      const isNear = ({ scale = view.scale, x = view.x, y = view.y }: Partial<View>): boolean =>
        Math.abs(view.scale / scale - 1) < 0.02 && Math.abs(view.x - x) < 10 && Math.abs(view.y - y) < 10
      return isNear(expected) ? view : null
    },
    { label: `the view is ${JSON.stringify(expected)}` }
  )

t.test('the plan', async (t) => {
  t.test('the wheel zooms the plan about the pointer, and a drag moves it', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-1')
    const pixel = { x: bounds.panel.width * 0.4, y: bounds.panel.height * 0.5 }
    const before = viewOf(page, bounds)
    await page.mouse.move(bounds.left + pixel.x, bounds.top + pixel.y)
    for (let turn = 0; turn < 6; turn += 1) await page.mouse.wheel(0, -200)
    const zoomed = await viewBecomes(page, bounds, { scale: zoomLimits(bounds).max })
    const [from, to] = [toFloor(before, pixel), toFloor(zoomed, pixel)]
    t.ok(Math.hypot(from.x - to.x, from.y - to.y) < 0.2, `${JSON.stringify(from)} is at ${JSON.stringify(to)}`)

    await page.mouse.down()
    await page.mouse.move(bounds.left + pixel.x - 60, bounds.top + pixel.y + 30, { steps: 3 })
    await page.mouse.up()
    const dragged = await viewBecomes(page, bounds, { ...zoomed, x: zoomed.x - 60, y: zoomed.y + 30 })

    await page.reload()
    await page.locator(PLAN).waitFor()
    t.same(viewOf(page, bounds), dragged, 'a reload keeps the view')
    await page.getByRole('button', { name: 'Fit' }).click()
    await eventually(() => viewInUrl(page) === null)
    t.equal(await page.getByRole('button', { name: 'Zoom out' }).isDisabled(), true)
    t.same(pageErrors, [])
  })

  t.test('a double click zooms in', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-1')
    const whole = viewOf(page, bounds)
    await panelOf(page).dblclick()
    await viewBecomes(page, bounds, { scale: whole.scale * 2 })

    t.same(pageErrors, [])
  })

  t.test('the keyboard zooms and moves the plan', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-1')
    const whole = viewOf(page, bounds)
    const panel = panelOf(page)
    await panel.focus()
    for (let press = 0; press < 4; press += 1) await panel.press('+')
    const zoomed = await viewBecomes(page, bounds, { scale: whole.scale * 1.5 ** 4 })
    await panel.press('ArrowRight')
    await panel.press('ArrowDown')
    await viewBecomes(page, bounds, { ...zoomed, x: zoomed.x - 80, y: zoomed.y - 80 })
    await panel.press('-')
    await viewBecomes(page, bounds, { scale: whole.scale * 1.5 ** 3 })
    await panel.press('0')
    await eventually(() => viewInUrl(page) === null)
    t.same(pageErrors, [])
  })

  t.test('two fingers zoom the plan on a phone, and the page does not scroll', async (t) => {
    const { page, context, bounds, pageErrors } = await openPlan(t, 'f-1', {}, PHONE)
    const whole = viewOf(page, bounds)
    const devtools = await context.newCDPSession(page)
    const fingers = (apart: number) =>
      [-1, 1].map((side, id) => ({
        x: bounds.left + bounds.panel.width / 2 + (side * apart) / 2,
        y: bounds.top + bounds.panel.height / 2,
        id
      }))
    await devtools.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: fingers(60) })
    for (const apart of [90, 140, 180])
      await devtools.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: fingers(apart) })
    await devtools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
    await viewBecomes(page, bounds, { scale: whole.scale * 3 })

    t.equal(await page.evaluate('visualViewport.scale'), 1)
    t.equal(await page.evaluate('scrollY'), 0)
    t.same(pageErrors, [])
  })

  t.test('the plan uses the width of a large screen', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-3', { A: [10, 5] }, LARGE)
    t.ok(bounds.panel.width > 1900, `${bounds.panel.width} px`)
    await eventually(async () => (await opacityAt(page, 'f-3', 10, 5)) === 255)
    t.same(pageErrors, [])
  })

  t.test('the plan stays at its place when the note above it changes', async (t) => {
    const narrow = { viewport: { width: 900, height: 700 } }
    const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'viewer', ...narrow })
    const release = await holdRequests(page, '**/watchers')
    await page.goto('/live/f-1')
    await page.getByRole('link', { name: /^Ground floor/ }).waitFor()
    const before = await page.locator(PLAN).boundingBox()
    release()
    await page.getByText('Watched by Vic Viewer').waitFor()
    t.same(await page.locator(PLAN).boundingBox(), before)
    t.same(pageErrors, [])
  })

  t.test('the plan fits a phone', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-5', { A: [10, 5] }, PHONE)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), PHONE.viewport.width)
    await page.goto('/live/building/1')
    await page.getByRole('link', { name: /^Second floor 0 people/ }).waitFor()
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), PHONE.viewport.width)
    t.same(pageErrors, [])
  })
})

t.test('markers', async (t) => {
  t.test('a marker that is clicked is selected and followed until the plan is moved', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-2', { A: [10, 5], B: [50, 20] })
    const follow = page.getByRole('button', { name: 'Follow' })
    t.equal(await follow.isDisabled(), true)
    const whole = viewOf(page, bounds)
    await panelOf(page).click({ position: toPanel(whole, { x: 10, y: 5 }) })
    const label = panelOf(page).getByText('A', { exact: true })
    await label.waitFor()
    await eventually(() => new URL(page.url()).searchParams.get('selected') === 'A')
    t.equal(await follow.getAttribute('aria-pressed'), 'true')

    for (let press = 0; press < 3; press += 1) await page.getByRole('button', { name: 'Zoom in' }).click()
    const { scale } = await viewBecomes(page, bounds, { scale: whole.scale * 1.5 ** 3 })
    await publish('f-2', { A: [45, 18] })
    await viewBecomes(page, bounds, centreOn(scale, { x: 45, y: 18 }, bounds))

    await panelOf(page).press('ArrowLeft')
    t.equal(await follow.getAttribute('aria-pressed'), 'false')
    await panelOf(page).press('f')
    t.equal(await follow.getAttribute('aria-pressed'), 'true')
    t.same(pageErrors, [])
  })

  t.test('markers at one place are a cluster, which a click resolves', async (t) => {
    const heap = Object.fromEntries(['A', 'B', 'C', 'D'].map((id, index) => [id, [20 + index / 4, 5] as const]))
    const { page, bounds, pageErrors } = await openPlan(t, 'f-6', heap, { viewport: { width: 900, height: 700 } })
    const whole = viewOf(page, bounds)
    const middle = { x: 20.375, y: 5 }
    await panelOf(page).click({ position: toPanel(whole, middle) })
    const zoomed = await viewBecomes(page, bounds, centreOn(CLOSE_UP, middle, bounds))
    t.equal(new URL(page.url()).searchParams.get('selected'), null)

    await panelOf(page).click({ position: toPanel(zoomed, { x: 20.75, y: 5 }) })
    await page.getByRole('button', { name: 'D', pressed: true }).waitFor()
    t.same(pageErrors, [])
  })

  t.test('the switch of the floors shows the number of people on this floor', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-8', { A: [10, 5], B: [50, 20] })
    await page.getByRole('link', { name: 'First floor 2', exact: true }).waitFor()
    await page.getByRole('list', { name: 'Legend' }).getByText('Employee 2').waitFor()
    t.same(pageErrors, [])
  })
})

t.test('layers', async (t) => {
  /** The picture of the ground, which layers are drawn on. */
  const groundOf = (page: Page) => page.evaluate<string>(`document.querySelector('canvas[aria-hidden]').toDataURL()`)

  t.test('each layer can be switched off, also by keyboard, and stays off after a reload', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1')
    const layers = page.getByRole('group', { name: 'Layers' })
    for (const name of ['Zones', 'Receivers']) {
      const before = await groundOf(page)
      await layers.getByRole('checkbox', { name }).focus()
      await page.keyboard.press('Space')
      await eventually(async () => (await groundOf(page)) !== before)
      t.equal(await layers.getByRole('checkbox', { name }).isChecked(), false)
    }
    await page.reload()
    await page.locator(PLAN).waitFor()
    t.equal(await layers.getByRole('checkbox', { name: 'Zones' }).isChecked(), false)
    t.equal(await layers.getByRole('checkbox', { name: 'Ambient devices' }).isChecked(), true)
    t.same(pageErrors, [])
  })

  t.test('the plan takes the colours of another theme', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1', {}, { colorScheme: 'light' })
    const before = await groundOf(page)
    await page.emulateMedia({ colorScheme: 'dark' })
    await eventually(async () => (await groundOf(page)) !== before)
    t.same(pageErrors, [])
  })
})
