import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { ROOT } from '../../../../scripts/lib/root.js'
import { eventually } from '../../../../test/helper/eventually.js'
import { required } from '../../../../test/helper/required.js'
import { pngOf } from '../../helper/demo-page.js'
import { CLIENT_ERRORS } from '../page/page-tests.js'
import { openPage, viewOf } from './stack.js'

/** Drags an element by this distance in pixels of the screen. */
const drag = async (page: Page, element: Locator, dx: number, dy: number): Promise<void> => {
  const { x, y, width, height } = required(await element.boundingBox())
  await page.mouse.move(x + width / 2, y + height / 2)
  await page.mouse.down()
  await page.mouse.move(x + width / 2 + dx, y + height / 2 + dy, { steps: 3 })
  await page.mouse.up()
}
const handleOf = (page: Page, name: RegExp) => page.getByRole('button', { name })

t.test('the sample plan is downloaded, uploaded, calibrated, and shown on the live plan', async (t) => {
  const { page, pageErrors, findings } = await openPage(t, { as: 'admin', colorScheme: 'light' })
  await page.goto('/floors/f-1')
  await page.getByRole('heading', { name: 'Plan of Ground floor' }).waitFor()
  const downloaded = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download the sample plan' }).click()
  const file = join(ROOT, '.test-build', 'sample-plan.svg')
  await (await downloaded).saveAs(file)
  await page.getByLabel('Upload image').setInputFiles(file)
  const [first, second, origin] = [/^Point A/, /^Point B/, /^Origin/].map((name) => handleOf(page, name))
  if (!first || !second || !origin) throw new Error('there are three handles')
  await first.waitFor()
  t.same(await findings(), [])

  // The keyboard moves a point by one pixel of the image, and by ten with Shift.
  const before = required(await first.getAttribute('aria-label'))
  await first.press('Shift+ArrowLeft')
  await first.press('ArrowUp')
  await eventually(async () => (await first.getAttribute('aria-label')) !== before)
  // Clicks set A and B to the ends of the line of 10 m: 82 × 36 m are drawn, and the corner of the floor is at 4, 4.
  const picture = page.getByRole('region', { name: 'Plan image' }).locator('image')
  const box = required(await picture.boundingBox())
  const at = (x: number, y: number) => [box.x + (x / 82) * box.width, box.y + (y / 36) * box.height] as const
  await page.mouse.click(...at(4, 32))
  await page.mouse.click(...at(14, 32))
  await page.getByLabel('Distance between A and B (m)').fill('10')
  const place = required(await origin.boundingBox())
  const [x, y] = at(4, 4)
  await drag(page, origin, x - place.x - place.width / 2, y - place.y - place.height / 2)
  await page.getByText(/the image shows 8[0-4]\.\d × 3[5-7]\.\d m\.$/).waitFor()
  await page.getByRole('button', { name: 'Save calibration' }).click()
  await page.getByText('The calibration was saved').waitFor()

  await page.goto('/live/f-1')
  const shown = page.getByRole('region', { name: 'Plan', exact: true }).locator('image')
  // The picture is as much larger than the floor of 74 m as it was drawn.
  const { width } = required(await shown.boundingBox())
  const { scale } = await viewOf(page)
  t.ok(Math.abs(width / scale - 82) < 3, `${width} pixels at ${scale} per metre`)
  const filter = () => page.evaluate<string>(`getComputedStyle(document.querySelector('.plan-picture')).filter`)
  t.equal(await filter(), 'none')
  await page.emulateMedia({ colorScheme: 'dark' })
  t.match(await filter(), /invert/)
  t.same(pageErrors, [])
})

t.test('PNG files are plans too, and others are rejected with the reason', async (t) => {
  const { page, pageErrors } = await openPage(t, { as: 'admin', expected: CLIENT_ERRORS })
  await page.goto('/floors/f-3')
  const choose = (name: string, mimeType: string, buffer: Buffer) =>
    page.getByLabel(/^(Upload|Replace) image/).setInputFiles({ name, mimeType, buffer })
  await choose('plan.txt', 'text/plain', Buffer.from('a plan'))
  await page
    .getByRole('alert')
    .getByText(/^Send a PNG/)
    .waitFor()
  await choose('plan.png', 'image/png', Buffer.alloc(10_000_001))
  await page.getByRole('alert').getByText('The file is larger than 10 MB.').waitFor()
  await choose('plan.png', 'image/png', pngOf(0))
  await handleOf(page, /^Point A/).waitFor()
  await page.getByRole('button', { name: 'Remove image' }).click()
  await page.getByLabel('Upload image').waitFor()
  t.same(pageErrors, [])
})

t.test('the area of a zone', async (t) => {
  const status = (page: Page) => page.getByRole('status').filter({ hasText: /area/i })
  const point = (page: Page, number: number) => handleOf(page, new RegExp(`^Point ${number} at`))

  t.test('the area of a zone is edited by mouse', async (t) => {
    const { page, pageErrors, findings } = await openPage(t, { as: 'operator' })
    await page.goto('/zones/3/area')
    await status(page)
      .getByText(/^Area: /)
      .waitFor()
    const before = await status(page).innerText()
    await drag(page, point(page, 3), 40, 30)
    await eventually(async () => (await status(page).innerText()) !== before)
    // Dragged across the opposite edge, the edges cross.
    await drag(page, point(page, 1), 500, 100)
    await status(page).getByText('The area crosses itself.').waitFor()
    t.equal(await page.getByRole('button', { name: 'Save area' }).isDisabled(), true)
    await drag(page, point(page, 1), -500, -100)
    await status(page)
      .getByText(/^Area: /)
      .waitFor()
    t.same(await findings(), [])
    await page.getByRole('button', { name: 'Save area' }).click()
    await page.getByText('The area of Reception was saved').waitFor()
    await page.waitForURL(/\/zones$/)
    t.same(pageErrors, [])
  })

  t.test('the area of a zone is edited by keyboard, and leaving asks first', async (t) => {
    const { page, pageErrors } = await openPage(t, { as: 'operator' })
    await page.goto('/zones/11/area')
    const first = page.getByRole('button', { name: 'Point 1 at 0, 0 metres' })
    await first.press('Shift+ArrowRight')
    await page.locator(':focus').press('ArrowDown')
    await page.getByRole('button', { name: 'Point 1 at 1, 0.1 metres' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Insert')
    await point(page, 5).waitFor()
    await page.keyboard.press('Delete')
    await point(page, 5).waitFor({ state: 'detached' })
    page.once('dialog', (dialog) => void dialog.dismiss())
    await page.getByRole('link', { name: 'All zones' }).click()
    t.match(page.url(), '/area')
    await page.getByRole('button', { name: 'Save area' }).press('Enter')
    await page.getByText('The area of Finance was saved').waitFor()
    t.same(pageErrors, [])
  })

  t.test('an area is drawn with clicks, and is not saved over that of somebody else', async (t) => {
    const { page, context, pageErrors } = await openPage(t, { as: 'operator', expected: CLIENT_ERRORS })
    await page.goto('/zones/5/area')
    await status(page)
      .getByText(/^Area: /)
      .waitFor()
    await page.getByRole('button', { name: 'Draw again' }).click()
    await page.getByText('No area yet.').waitFor()
    const sheet = page.getByRole('region', { name: 'Floor', exact: true }).locator('.sheet')
    const { width, height } = required(await sheet.boundingBox())
    for (const [x, y] of [
      [0.2, 0.2],
      [0.5, 0.2],
      [0.5, 0.7]
    ] as const)
      await sheet.click({ position: { x: x * width, y: y * height } })
    await status(page)
      .getByText(/^Area: /)
      .waitFor()

    const { csrfToken } = await (await context.request.get('/api/auth/csrf-token')).json()
    const headers = { 'x-csrf-token': csrfToken }
    await context.request.put('/api/zones/5', { headers, data: { description: 'changed meanwhile' } })
    await page.getByRole('button', { name: 'Save area' }).click()
    await page
      .getByRole('alert')
      .getByText(/changed/)
      .waitFor()
    t.same(pageErrors, [])
  })
})
