import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { startBrowser } from '../../../../test/helper/browser.js'
import { eventually } from '../../../../test/helper/eventually.js'
import { FLOORS } from '../../../backend/site/layout.js'
import { fit, type View } from '../../../web/floor-plan/viewport.js'
import { type DemoPageOptions, openDemoPage } from '../../helper/demo-page.js'
import { startDemoStack } from '../../helper/demo-stack.js'
import { PLAN } from '../page/page-tests.js'

/**
 * Shared by the tests of this folder, because starting them takes longer than most of the tests. The simulator is off: the
 * tests publish all positions. The relay keeps the last position of each transmitter.
 */
export const [stack, browser] = await Promise.all([startDemoStack(t, { DEMO_SIMULATOR: 'off' }), startBrowser(t)])

export type Positions = Readonly<Record<string, readonly [x: number, y: number]>>

/** Publishes positions; with `timestamp` older ones, with `onFloor` those of transmitters that have left the floor. */
export const publish = async (
  floorId: string,
  positions: Positions,
  { timestamp = Date.now(), onFloor = floorId }: { readonly timestamp?: number; readonly onFloor?: string } = {}
): Promise<void> => {
  const data = Object.entries(positions).map(([transmitterId, [x, y]]) => {
    const position = { x, y }
    return { transmitterId, position, positionMethod: 'nearest', floorId: onFloor, accuracy: 3, timestamp }
  })
  const request = { channel: `floor:${floorId}`, data: { type: 'position-batch', data } }
  const { status, body } = await stack.api('publish', request)
  if (status !== 200) throw new Error(`publishing failed: ${status} ${body}`)
}

export const openPage = (t: Test, options: DemoPageOptions = {}) =>
  openDemoPage(t, browser, stack, { as: 'viewer', ...options })

/**
 * Opens the plan of a floor and publishes the positions until they are there. Each test with positions has its own floor,
 * because the relay keeps the last ones.
 */
export const openPlan = async (t: Test, floorId: string, positions: Positions = {}, options: DemoPageOptions = {}) => {
  const opened = await openPage(t, options)
  await opened.page.goto(`/live/${floorId}`)
  await opened.page.locator(PLAN).waitFor()
  // The switch of the floors is above the plan, which moves when the switch appears.
  await opened.page.getByRole('navigation', { name: 'Floors' }).waitFor()
  const count = Object.keys(positions).length
  await eventually(async () => {
    if (count === 0) return true
    await publish(floorId, positions)
    return (await opened.page.getByText(`${count} on this floor`).count()) === 1
  })
  return { ...opened, bounds: await boundsOf(opened.page, floorId) }
}

export const panelOf = (page: Page) => page.getByRole('region', { name: 'Plan', exact: true })
export const listOf = (page: Page) => page.getByRole('region', { name: 'People and assets' })

/** The floor and the panel that shows it. */
const boundsOf = async (page: Page, floorId: string) => {
  const floor = FLOORS.find((one) => one.floorId === floorId)
  const box = await page.locator(PLAN).boundingBox()
  if (!floor || !box) throw new Error(`there is no plan of ${floorId}`)
  const { x: left, y: top, width, height } = box
  return { floor: { width: floor.width, height: floor.height }, panel: { width, height }, left, top }
}

/** The scale and the place of the drawing in its panel. */
export const viewOf = (page: Page): Promise<View> =>
  page.evaluate<View>(`{
    const { a, e, f } = document.querySelector('.floor').getCTM()
    ;({ scale: a, x: e, y: f })
  }`)

/** The opacity of the markers at a place on the floor, 0 to 255, while the whole floor is shown. */
export const opacityAt = async (page: Page, floorId: string, x: number, y: number): Promise<number> => {
  const view = fit(await boundsOf(page, floorId))
  return page.evaluate<number>(`{
    const plan = document.querySelector('${PLAN}')
    const pixel = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d')
    pixel.drawImage(plan, ${x * view.scale + view.x}, ${y * view.scale + view.y}, 1, 1, 0, 0, 1, 1)
    pixel.getImageData(0, 0, 1, 1).data[3]
  }`)
}
