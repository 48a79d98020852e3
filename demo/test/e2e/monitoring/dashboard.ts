import type { Locator } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { openDemoPage } from '../../helper/demo-page.js'
import { browser, stack } from './stack.js'

t.test('the dashboard', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'operator', colorScheme: 'light' })
  const chart = page.getByRole('img', { name: /^Number of people/ })
  const occupancy = page.getByRole('region', { name: /^Occupancy/ })
  const legend = occupancy.getByRole('list')
  const canvas = chart.locator('canvas')
  await page.goto('/dashboard')
  await canvas.waitFor()

  t.test('the chart has a line for each building with its current value', async (t) => {
    for (const name of ['Main House', 'Research Wing', 'Workshop']) await legend.getByText(name).waitFor()
    t.match(await occupancy.innerText(), /Now, /)
  })

  t.test('the chart shows the values under the pointer', async (t) => {
    const now = await legend.innerText()
    // The chart may move while other parts of the page load.
    await eventually(async () => {
      await chart.hover()
      return (await occupancy.getByText('Now, ').count()) === 0
    })
    t.not(await legend.innerText(), now, 'half a day ago most people were away')
    await page.mouse.move(0, 0)
    await occupancy.getByText('Now, ').waitFor()
  })

  t.test('the chart is read with arrow keys, and as a table', async (t) => {
    await chart.focus()
    await page.keyboard.press('Home')
    const first = await occupancy.getByRole('status').innerText()
    t.match(first, /Main House \d+, Research Wing \d+, Workshop \d+$/)
    await page.keyboard.press('ArrowRight')
    await eventually(async () => (await occupancy.getByRole('status').innerText()) !== first)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    const rows = occupancy.getByRole('table').getByRole('row')
    await rows.nth(24).waitFor()
    t.match(await rows.first().innerText(), /Time\s+Main House\s+Research Wing\s+Workshop/)
  })

  t.test('the chart shows the floors of a building, and the choice is in the URL', async (t) => {
    await page.getByLabel('Lines of the chart').selectOption({ label: 'Floors of Workshop' })
    await page.waitForURL(/building=3/)
    await legend.getByText('Ground floor').waitFor()
    await page.reload()
    await legend.getByText('Second floor').waitFor()
    t.equal(await legend.getByText('Main House').count(), 0)
  })

  t.test('the chart follows the width of the window and the theme', async () => {
    const width = async (): Promise<number> => (await canvas.boundingBox())?.width ?? 0
    const picture = () => canvas.evaluate((element: unknown) => (element as { toDataURL(): string }).toDataURL())
    await canvas.waitFor()
    const [wide, light] = [await width(), await picture()]
    await page.emulateMedia({ colorScheme: 'dark' })
    await eventually(async () => (await picture()) !== light)
    await page.setViewportSize({ width: 700, height: 800 })
    await eventually(async () => (await width()) < wide)
    await page.setViewportSize({ width: 1280, height: 720 })
    await page.emulateMedia({ colorScheme: 'light' })
  })

  t.test('figures link to their lists, whose rows they count', async (t) => {
    const follow = async (link: Locator, path: RegExp, control: string, value: string): Promise<void> => {
      await page.getByRole('link', { name: 'Dashboard', exact: true }).click()
      await link.click()
      await page.waitForURL(path)
      await eventually(async () => (await page.getByLabel(control, { exact: true }).inputValue()) === value)
    }
    const link = (name: RegExp): Locator => page.getByRole('main').getByRole('link', { name }).first()
    await follow(link(/^Employees on site/), /personnel\?isOnSite=true/, 'Presence', 'true')
    await follow(link(/^Visitors/), /visits\?kind=visitor&status=on-site/, 'Kind', 'visitor')
    await follow(link(/^Open alerts/), /alerts\?state=open/, 'State', 'open')
    await follow(link(/^Silent tag/), /alerts\?kind=tag-silent/, 'Kind', 'tag-silent')
    await follow(link(/^Quality/), /personnel\?departmentId=5/, 'Department', '5')
    await follow(link(/^\d+ Assets, Workshop, Ground floor/), /inventory\?currentFloorId=f-7/, 'Current floor', 'f-7')

    await page.getByRole('link', { name: 'Dashboard', exact: true }).click()
    const good = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'Good', exact: true }) })
    const count = await eventually(async () => Number(await good.locator('strong').innerText()))
    await good.getByRole('link').click()
    await page.getByText(`${count} transmitters`).waitFor()
    t.match(page.url(), /batteryState=good/)
  })

  t.test('no error is reported by the dashboard', async (t) => t.same(pageErrors, []))
})
