import type { Page } from 'playwright-core'
import { FLOORS } from '../../../backend/site/layout.js'
import { type Bounds, fit, type View, viewOfText } from '../../../web/floor-plan/viewport.js'
import { PLAN } from './page-tests.js'

/** The floor and the panel that shows it. */
export const boundsOf = async (
  page: Page,
  floorId: string
): Promise<Bounds & { readonly left: number; readonly top: number }> => {
  const floor = FLOORS.find((one) => one.floorId === floorId)
  const box = await page.locator(PLAN).boundingBox()
  if (!floor || !box) throw new Error(`there is no plan of ${floorId}`)
  const { x: left, y: top, width, height } = box
  return { floor: { width: floor.width, height: floor.height }, panel: { width, height }, left, top }
}

/** The view of the URL, or of the whole floor. */
export const viewOf = (page: Page, bounds: Bounds): View => {
  const text = new URL(page.url()).searchParams.get('view')
  return (text === null ? null : viewOfText(text, bounds)) ?? fit(bounds)
}

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
