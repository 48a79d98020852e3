import type { Page } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { listOf, openPage, panelOf, publish } from './stack.js'

const FLOOR = 'f-7'
/** One transmitter in each of 12 × 5 squares of 5 m. */
const everywhere = Object.fromEntries(
  Array.from({ length: 60 }, (_, index) => {
    return [`T${index}`, [2.5 + 5 * (index % 12), 2.5 + 5 * Math.floor(index / 12)] as const]
  })
)

/** The transmitters of each batch that the page receives. */
const listenTo = (page: Page): string[][] => {
  const batches: string[][] = []
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      const ids = [...String(payload).matchAll(/"transmitterId":"([^"]+)"/g)].map(([, id = '']) => id)
      if (ids.length > 0) batches.push(ids)
    })
  )
  return batches
}

/** Zooms to the upper left corner of the floor. */
const zoomToCorner = async (page: Page): Promise<void> => {
  const panel = panelOf(page)
  await panel.waitFor()
  for (let press = 0; press < 5; press += 1) await panel.press('+')
  for (let press = 0; press < 30; press += 1) await panel.press('ArrowLeft')
  for (let press = 0; press < 20; press += 1) await panel.press('ArrowUp')
}

for (const viewport of [
  { width: 1440, height: 900 },
  { width: 390, height: 844 }
]) {
  t.test(`the live plan receives only the visible part of the floor, at ${viewport.width} px`, async (t) => {
    const { page, pageErrors } = await openPage(t, { viewport })
    const batches = listenTo(page)
    const listed = (id: string) => listOf(page).getByRole('button', { name: id, exact: true })
    const legend = page.getByRole('list', { name: 'Legend' })
    await page.goto(`/live/${FLOOR}`)
    await zoomToCorner(page)
    await page.getByText(/^\d+ in this part of the floor$/).waitFor()
    await eventually(async () => {
      await publish(FLOOR, everywhere)
      return (await listed('T0').count()) === 1
    })
    t.notMatch(await legend.innerText(), /Employee\s+\d/)
    batches.length = 0
    await publish(FLOOR, everywhere)
    await eventually(() => batches.length > 0)
    t.ok(batches.every((ids) => ids.includes('T0') && !ids.includes('T59') && ids.length <= 20))

    // A transmitter that leaves the part is not shown at its last place there.
    await publish(FLOOR, { T0: [57, 23] })
    await listed('T0').waitFor({ state: 'detached' })
    await page.getByText('Live', { exact: true }).waitFor()

    // Panning to the right end never empties the list.
    let fewest = 60
    const { T0: _left, ...others } = everywhere
    await eventually(async () => {
      await publish(FLOOR, others)
      await panelOf(page).press('ArrowRight')
      fewest = Math.min(fewest, await listOf(page).getByRole('button').count())
      return (await listed('T11').count()) === 1
    })
    t.ok(fewest > 0, `${fewest} listed while panning`)

    // The part follows the selected transmitter.
    await listed('T11').click()
    for (let x = 57; x > 30; x -= 3) {
      await publish(FLOOR, { T11: [x, 2.5] })
      await listed('T11').waitFor()
    }
    await panelOf(page).getByText('T11', { exact: true }).waitFor()
    await page.mouse.move(0, 0)
    await listed('T10').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Fit' }).click()
    await legend.getByText('Employee 60').waitFor()
    t.same(pageErrors, [])
  })
}

t.test('a part of the floor without people is live', async (t) => {
  const { page, pageErrors } = await openPage(t)
  await publish(FLOOR, Object.fromEntries(Object.keys(everywhere).map((id) => [id, [55, 20]])))
  await page.goto(`/live/${FLOOR}`)
  await zoomToCorner(page)
  await page.getByText('No people or assets in this part of the floor.').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  t.same(pageErrors, [])
})
