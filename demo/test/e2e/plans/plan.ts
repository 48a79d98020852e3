import type { Page } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { CLOSE_UP } from '../../../web/floor-plan/arrangement.js'
import { centreOn, toFloor, toPanel, type View, zoomLimits } from '../../../web/floor-plan/viewport.js'
import { listOf, openPlan, panelOf, publish, viewOf } from './stack.js'

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }

/** Resolves when the view of the plan is as expected. */
const viewBecomes = (page: Page, expected: Partial<View>): Promise<View> =>
  eventually(
    async () => {
      const view = await viewOf(page)
      const isNear = ({ scale = view.scale, x = view.x, y = view.y }: Partial<View>): boolean =>
        Math.abs(view.scale / scale - 1) < 0.02 && Math.abs(view.x - x) < 10 && Math.abs(view.y - y) < 10
      return isNear(expected) ? view : null
    },
    { label: `the view is ${JSON.stringify(expected)}` }
  )
const isFollowed = (page: Page) => page.getByRole('button', { name: 'Follow' }).getAttribute('aria-pressed')
const fillOf = (page: Page, selector: string) =>
  page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).fill`)

t.test('the view of the plan', async (t) => {
  t.test('the wheel zooms the plan about the pointer, and a drag moves it', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-1')
    const pixel = { x: bounds.panel.width * 0.4, y: bounds.panel.height * 0.5 }
    const before = await viewOf(page)
    await page.mouse.move(bounds.left + pixel.x, bounds.top + pixel.y)
    for (let turn = 0; turn < 6; turn += 1) await page.mouse.wheel(0, -200)
    const zoomed = await viewBecomes(page, { scale: zoomLimits(bounds).max })
    const [from, to] = [toFloor(before, pixel), toFloor(zoomed, pixel)]
    t.ok(Math.hypot(from.x - to.x, from.y - to.y) < 0.2, `${JSON.stringify(from)} is at ${JSON.stringify(to)}`)

    await page.mouse.down()
    await page.mouse.move(bounds.left + pixel.x - 60, bounds.top + pixel.y + 30, { steps: 3 })
    await page.mouse.up()
    await viewBecomes(page, { ...zoomed, x: zoomed.x - 60, y: zoomed.y + 30 })
    await page.getByRole('button', { name: 'Fit' }).click()
    await viewBecomes(page, before)
    t.equal(await page.getByRole('button', { name: 'Zoom out' }).isDisabled(), true)
    t.same(pageErrors, [])
  })

  t.test('the keyboard zooms and moves the plan', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1')
    const whole = await viewOf(page)
    const panel = panelOf(page)
    await panel.focus()
    for (let press = 0; press < 4; press += 1) await panel.press('+')
    const zoomed = await viewBecomes(page, { scale: whole.scale * 1.5 ** 4 })
    await panel.press('ArrowRight')
    await panel.press('ArrowDown')
    await viewBecomes(page, { ...zoomed, x: zoomed.x - 80, y: zoomed.y - 80 })
    await panel.press('-')
    await viewBecomes(page, { scale: whole.scale * 1.5 ** 3 })
    await panel.press('0')
    await viewBecomes(page, whole)
    t.same(pageErrors, [])
  })

  t.test('the plan fits a phone, and two fingers zoom it without scrolling the page', async (t) => {
    const { page, context, bounds, pageErrors } = await openPlan(t, 'f-5', { A: [10, 5] }, PHONE)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), PHONE.viewport.width)
    const whole = await viewOf(page)
    const devtools = await context.newCDPSession(page)
    const touch = (type: 'touchStart' | 'touchMove', apart: number) =>
      devtools.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: [-1, 1].map((side, id) => ({
          x: bounds.left + bounds.panel.width / 2 + (side * apart) / 2,
          y: bounds.top + bounds.panel.height / 2,
          id
        }))
      })
    await touch('touchStart', 60)
    for (const apart of [90, 140, 180]) await touch('touchMove', apart)
    await devtools.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
    await viewBecomes(page, { scale: whole.scale * 3 })
    t.same(await page.evaluate('[visualViewport.scale, scrollY]'), [1, 0])
    t.same(pageErrors, [])
  })

  t.test('the plan takes the colours of another theme, and outlines the place of a link', async (t) => {
    const { page, pageErrors } = await openPlan(t, 'f-1', {}, { colorScheme: 'light' })
    const before = await fillOf(page, '.zone')
    await page.emulateMedia({ colorScheme: 'dark' })
    await eventually(async () => (await fillOf(page, '.zone')) !== before)
    await page.goto('/live/f-1?zone=3')
    await page.locator('.zone.linked').waitFor({ state: 'attached' })
    t.same(pageErrors, [])
  })
})

t.test('markers', async (t) => {
  t.test('a marker that is clicked is selected and followed until the plan is moved', async (t) => {
    const { page, bounds, pageErrors } = await openPlan(t, 'f-2', { A: [10, 5], B: [50, 20] })
    await page.getByRole('list', { name: 'Legend' }).getByText('Employee 2').waitFor()
    t.equal(await page.getByRole('button', { name: 'Follow' }).isDisabled(), true)
    const whole = await viewOf(page)
    await panelOf(page).click({ position: toPanel(whole, { x: 10, y: 5 }) })
    await panelOf(page).getByText('A', { exact: true }).waitFor()
    await page.waitForURL(/selected=A/)
    t.equal(await isFollowed(page), 'true')
    for (let press = 0; press < 3; press += 1) await page.getByRole('button', { name: 'Zoom in' }).click()
    const { scale } = await viewBecomes(page, { scale: whole.scale * 1.5 ** 3 })
    await publish('f-2', { A: [45, 18] })
    await viewBecomes(page, centreOn(scale, { x: 45, y: 18 }, bounds))
    await panelOf(page).press('ArrowLeft')
    t.equal(await isFollowed(page), 'false')
    await panelOf(page).press('f')
    t.equal(await isFollowed(page), 'true')
    t.same(pageErrors, [])
  })

  t.test('markers at one place are a cluster, which a click resolves', async (t) => {
    const heap = Object.fromEntries(['A', 'B', 'C', 'D'].map((id, index) => [id, [20 + index / 4, 5] as const]))
    const { page, bounds, pageErrors } = await openPlan(t, 'f-6', heap, { viewport: { width: 900, height: 700 } })
    const middle = { x: 20.375, y: 5 }
    await panelOf(page).click({ position: toPanel(await viewOf(page), middle) })
    const zoomed = await viewBecomes(page, centreOn(CLOSE_UP, middle, bounds))
    t.equal(new URL(page.url()).searchParams.get('selected'), null)
    await panelOf(page).click({ position: toPanel(zoomed, { x: 20.75, y: 5 }) })
    await listOf(page).getByRole('button', { name: 'D', pressed: true }).waitFor()
    t.same(pageErrors, [])
  })

  t.test('a frame with 500 moving markers takes less time than a screen has for it', async (t) => {
    const viewport = { width: 1440, height: 900 }
    const { page, pageErrors } = await openPlan(t, 'f-3', {}, { viewport, reducedMotion: 'no-preference' })
    const move = (shift: number) => {
      const places = Array.from({ length: 500 }, (_, index) => {
        return [`M${index}`, [1 + ((index * 7 + shift) % 52), 1 + ((index * 3 + shift) % 22)]] as const
      })
      return publish('f-3', Object.fromEntries(places))
    }
    await eventually(async () => {
      await move(0)
      return (await page.getByText('500 on this floor').count()) === 1
    })
    // All markers are drawn by themselves.
    const { scale } = await viewOf(page)
    await panelOf(page).press('+')
    await viewBecomes(page, { scale: scale * 1.5 })
    await page.evaluate(`{
      globalThis.frames = []
      const request = requestAnimationFrame
      globalThis.requestAnimationFrame = (draw) => request((now) => {
        const start = performance.now()
        draw(now)
        frames.push(performance.now() - start)
      })
    }`)
    await move(1)
    await move(3)
    await eventually(() => page.evaluate('frames.length >= 60'))
    // Other programs on the machine hardly affect the faster half of the frames.
    const median = await page.evaluate<number>('frames.toSorted((a, b) => a - b)[frames.length >> 1]')
    t.ok(median < 1000 / 60, `${median.toFixed(1)} ms`)
    t.same(pageErrors, [])
  })
})
