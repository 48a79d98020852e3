import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { required } from '../../../../test/helper/required.js'
import { openDemoPage } from '../../helper/demo-page.js'
import { CLIENT_ERRORS } from '../page/page-tests.js'
import { browser, stack } from './stack.js'

/** A picture of this size, drawn by the browser. */
const pictureOf = async (page: Page, width: number, height: number): Promise<Buffer> => {
  const url = (await page.evaluate(`{
    const canvas = Object.assign(document.createElement('canvas'), { width: ${width}, height: ${height} })
    const pen = canvas.getContext('2d')
    pen.fillStyle = '#ffe9c7'
    pen.fillRect(0, 0, ${width}, ${height})
    pen.strokeRect(60, 40, ${width} - 120, ${height} - 80)
    canvas.toDataURL('image/png')
  }`)) as string
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')
}

/** Whether a canvas of the page has the yellow of the picture. The colours of the plan have less red than that. */
const showsPicture = (page: Page) =>
  page.evaluate(`[...document.querySelectorAll('canvas')].some((canvas) => {
    const pen = Object.assign(document.createElement('canvas'), { width: 32, height: 16 }).getContext('2d')
    pen.drawImage(canvas, 0, 0, 32, 16)
    const { data } = pen.getImageData(0, 0, 32, 16)
    return data.some((red, index) => index % 4 === 0 && data[index + 3] === 255 && red - data[index + 2] > 25)
  })`) as Promise<boolean>

/** The middle of an element on the screen. */
const middleOf = async (element: Locator) => {
  const { x, y, width, height } = required(await element.boundingBox())
  return { x: x + width / 2, y: y + height / 2 }
}

/** Drags an element by this distance in pixels of the screen. */
const drag = async (page: Page, element: Locator, dx: number, dy: number): Promise<void> => {
  const { x, y } = await middleOf(element)
  await page.mouse.move(x, y)
  await page.mouse.down()
  await page.mouse.move(x + dx, y + dy, { steps: 3 })
  await page.mouse.up()
}

t.test('a plan is uploaded, calibrated by mouse and keyboard, and shown on the live plan', async (t) => {
  const { page, pageErrors, findings } = await openDemoPage(t, browser, stack, { as: 'admin' })
  await page.goto('/floors')
  await page.getByRole('cell', { name: 'No image' }).first().waitFor()
  await page.getByRole('link', { name: 'Plan of Main House – First floor' }).click()
  await page.getByRole('heading', { name: 'Plan of First floor' }).waitFor()

  const buffer = await pictureOf(page, 1200, 500)
  await page.getByLabel('Upload image').setInputFiles({ name: 'plan.png', mimeType: 'image/png', buffer })
  const first = page.getByRole('button', { name: /^Point A/ })
  await first.waitFor()
  // The floor is 60 × 25 m, so the image fits it at once.
  await page.getByText('20.0 pixels per metre: the image shows 60.0 × 25.0 m.').waitFor()
  t.same(await findings(), [])

  // The keyboard moves a point by one pixel of the image, and by ten with Shift.
  await first.focus()
  await page.keyboard.press('Shift+ArrowLeft')
  await page.keyboard.press('ArrowUp')
  await page.getByRole('button', { name: 'Point A at 290, 249 pixels' }).waitFor()
  // Clicks set A and B.
  const sheet = page.getByRole('region', { name: 'Plan image' }).locator('.sheet')
  const box = required(await sheet.boundingBox())
  await sheet.click({ position: { x: box.width * 0.1, y: box.height * 0.2 } })
  await sheet.click({ position: { x: box.width * 0.9, y: box.height * 0.2 } })
  await page.getByRole('button', { name: /^Point A at 1[12]\d, (9|10)\d pixels/ }).waitFor()
  await page.getByLabel('Distance between A and B (m)').fill('24')
  await page.getByText(/^(39|40|41)\.\d pixels per metre/).waitFor()
  await page.getByRole('button', { name: /^Origin/ }).focus()
  await page.keyboard.press('Shift+ArrowRight')
  await page.getByRole('button', { name: 'Save calibration' }).click()
  await page.getByText('The calibration was saved').waitFor()

  await page.goto('/floors')
  await page
    .getByRole('row', { name: /First floor Main House/ })
    .getByText('Calibrated')
    .waitFor()
  await page.goto('/live/f-2')
  await eventually(() => showsPicture(page))
  t.same(pageErrors, [])
})

t.test('a rejected plan image is reported with the reason', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'admin', expected: CLIENT_ERRORS })
  await page.goto('/floors/f-3')
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
  await page.getByLabel('Upload image').setInputFiles({ name: 'plan.svg', mimeType: 'image/svg+xml', buffer: svg })
  await page.getByRole('alert').getByText('The SVG file has the element <script>, which is not allowed.').waitFor()
  const pdf = Buffer.from('%PDF-1.7')
  await page.getByLabel('Upload image').setInputFiles({ name: 'plan.pdf', mimeType: 'application/pdf', buffer: pdf })
  await page.getByRole('alert').getByText('The PDF file is damaged or has no page.').waitFor()
  t.same(pageErrors, [])
})

/** The share of light pixels in the middle of the canvas of the plan. */
const lightShare = (page: Page) =>
  page.evaluate(`{
    const [canvas] = document.querySelectorAll('canvas')
    const pen = Object.assign(document.createElement('canvas'), { width: 40, height: 20 }).getContext('2d')
    pen.drawImage(canvas, canvas.width * 0.3, canvas.height * 0.4, canvas.width * 0.4, canvas.height * 0.2, 0, 0, 40, 20)
    const { data } = pen.getImageData(0, 0, 40, 20)
    data.filter((value, index) => index % 4 === 0 && value > 160).length / 800
  }`) as Promise<number>

t.test('a white SVG plan is dark in the dark theme, and its calibration shows the whole floor', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'admin' })
  await page.goto('/floors/f-3')
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 250">
    <rect width="600" height="250" fill="white"/><path d="M10 10h580v230h-580z" fill="none" stroke="black"/></svg>`
  const buffer = Buffer.from(svg)
  await page.getByLabel('Upload image').setInputFiles({ name: 'plan.svg', mimeType: 'image/svg+xml', buffer })
  await page.getByText('50.0 pixels per metre: the image shows 60.0 × 25.0 m.').waitFor()

  // The image shows a quarter of the floor: all of the dashed frame is visible.
  await page.getByLabel('Distance between A and B (m)').fill('15')
  const border = page.locator('.border')
  const sheet = page.getByRole('region', { name: 'Plan image' })
  await eventually(async () => {
    const [inner, outer] = [required(await border.boundingBox()), required(await sheet.boundingBox())]
    return inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width && inner.height < outer.height
  })
  await page.getByLabel('Distance between A and B (m)').fill('30')
  await page.getByRole('button', { name: 'Save calibration' }).click()
  await page.getByText('The calibration was saved').waitFor()

  await page.goto('/live/f-3')
  await eventually(async () => (await lightShare(page)) > 0.6)
  await page.emulateMedia({ colorScheme: 'dark' })
  await eventually(async () => (await lightShare(page)) < 0.3)
  t.same(pageErrors, [])
})

t.test('the area of a zone', async (t) => {
  t.test('the area of a zone is edited by mouse', async (t) => {
    const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/zones?search=Reception')
    await page.getByRole('link', { name: 'Area of Reception' }).click()
    const status = page.getByRole('status').filter({ hasText: /area/i })
    await status.getByText(/^Area: /).waitFor()
    const point = (number: number) => page.getByRole('button', { name: new RegExp(`^Point ${number} at`) })

    const before = await status.innerText()
    await drag(page, point(3), 40, 30)
    await eventually(async () => (await status.innerText()) !== before)
    // Dragged across the opposite edge, the edges cross.
    await drag(page, point(1), 500, 100)
    await status.getByText('The area crosses itself.').waitFor()
    t.equal(await page.getByRole('button', { name: 'Save area' }).isDisabled(), true)
    await page.getByRole('button', { name: 'Undo' }).click()
    await status.getByText(/^Area: /).waitFor()

    // The plus sign of an edge adds a point.
    await page.getByRole('button', { name: 'Add a point after point 1', exact: true }).click()
    await point(5).waitFor()
    const corner = await point(4).getAttribute('aria-label')
    await drag(page, page.getByRole('button', { name: 'Whole area' }), 30, 20)
    await eventually(async () => (await point(4).getAttribute('aria-label')) !== corner)
    await page.getByRole('button', { name: 'Save area' }).click()
    await page.getByText('The area of Reception was saved').waitFor()
    await page.waitForURL(/\/zones$/)
    t.same(pageErrors, [])
  })

  t.test('the area of a zone is edited by keyboard', async (t) => {
    const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/zones?search=Finance')
    await page.getByRole('link', { name: 'Area of Finance' }).focus()
    await page.keyboard.press('Enter')
    const first = page.getByRole('button', { name: 'Point 1 at 0, 0 metres' })
    await first.focus()
    await page.keyboard.press('Shift+ArrowRight')
    await page.keyboard.press('ArrowDown')
    await page.getByRole('button', { name: 'Point 1 at 1, 0.1 metres' }).and(page.locator(':focus')).waitFor()
    await page.keyboard.press('Insert')
    await page.getByRole('button', { name: /^Point 5/ }).waitFor()
    await page.keyboard.press('Delete')
    await page.getByRole('button', { name: /^Point 5/ }).waitFor({ state: 'detached' })
    await page.keyboard.press('Control+z')
    await page.getByRole('button', { name: /^Point 5/ }).waitFor()
    // A number outside of the floor is an error.
    const x = page.getByLabel('x of point 2 in metres')
    await x.fill('900')
    await page.keyboard.press('Tab')
    await page.getByText('The area must be inside the floor.').waitFor()
    await x.fill('12')
    await page.keyboard.press('Tab')
    await page.getByRole('button', { name: 'Save area' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('The area of Finance was saved').waitFor()
    t.same(pageErrors, [])
  })

  t.test('the area of a new zone is drawn, and leaving asks first', async (t) => {
    const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'operator' })
    await page.goto('/zones')
    await page.getByRole('button', { name: 'Add zone' }).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('Name').fill('Quiet corner')
    await form.getByLabel('Floor').selectOption('f-3')
    await form.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Quiet corner was added').waitFor()
    await page.getByLabel('Search by name').fill('quiet')
    await page.getByRole('link', { name: 'Area of Quiet corner' }).click()
    const sheet = page.getByRole('region', { name: 'Floor', exact: true }).locator('.sheet')
    await page.getByText('No area yet.').waitFor()
    const { width, height } = required(await sheet.boundingBox())
    for (const [x, y] of [
      [0.2, 0.2],
      [0.5, 0.2],
      [0.5, 0.7]
    ] as const)
      await sheet.click({ position: { x: x * width, y: y * height } })
    await page.getByText(/^Area: /).waitFor()
    await page.getByRole('button', { name: 'Finish' }).click()

    page.once('dialog', (dialog) => void dialog.dismiss())
    await page.getByRole('link', { name: 'All zones' }).click()
    t.match(page.url(), '/area')
    await page.getByRole('button', { name: 'Save area' }).click()
    await page.getByText('The area of Quiet corner was saved').waitFor()
    t.same(pageErrors, [])
  })
})

t.test('personnel are exported, changed in the file and imported again', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'admin', expected: CLIENT_ERRORS })
  await page.goto('/personnel')
  const downloaded = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV' }).click()
  const file = await readFile(required(await (await downloaded).path()), 'utf8')
  await page.getByRole('button', { name: 'Import' }).click()
  const dialog = page.getByRole('dialog')
  const choose = (text: string) =>
    dialog.getByLabel('CSV file').setInputFiles({ name: 'p.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })

  await choose('id,email,floorId\n1,no address,f-1\n2,b@example.com,f-99\n')
  await dialog.getByRole('button', { name: 'Faulty 2' }).waitFor()
  await dialog.getByRole('row', { name: /^2 .* E-mail address does not have the right form\./ }).waitFor()
  await dialog.getByRole('row', { name: /^3 .* Floor does not exist\./ }).waitFor()
  t.ok(await dialog.getByRole('button', { name: 'Import 0 rows' }).isDisabled())

  await choose(`${file.trimEnd()}\r\n,,,Imported,Person\r\n`)
  await dialog.getByText('160 unchanged').waitFor()
  await dialog.getByRole('button', { name: 'Import 1 row' }).click()
  await page.getByText('1 row added, 0 changed, 0 left out').waitFor()
  await page.getByLabel('Search by name').fill('Imported Person')
  await page.getByRole('cell', { name: 'Imported Person', exact: true }).waitFor()
  t.same(pageErrors, [])
})
