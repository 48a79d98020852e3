import type { Page } from 'playwright-core'
import t from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { openDemoPage } from '../../helper/demo-page.js'
import { browser, stack } from './stack.js'

const FLOOR = 'f-7'
/** One transmitter in each of 12 × 5 squares of 5 m. */
const everywhere = Array.from({ length: 60 }, (_, index): [string, readonly [number, number]] => [
  `T${index}`,
  [2.5 + 5 * (index % 12), 2.5 + 5 * Math.floor(index / 12)]
])
const LAST = 'T59'

const publish = async (positions: Iterable<readonly [string, readonly [number, number]]>): Promise<void> => {
  const data = [...positions].map(([transmitterId, [x, y]]) => {
    return { transmitterId, position: { x, y }, positionMethod: 'nearest', floorId: FLOOR, timestamp: Date.now() }
  })
  const request = { channel: `floor:${FLOOR}`, data: { type: 'position-batch', data } }
  const { status, body } = await stack.api('publish', request)
  if (status !== 200) throw new Error(`publishing failed: ${status} ${body}`)
}

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

for (const [viewport, scale] of [
  [{ width: 1440, height: 900 }, 110],
  [{ width: 390, height: 844 }, 60]
] as const) {
  t.test(`the live plan asks for the visible part of the floor, at ${viewport.width} px`, async (t) => {
    const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'viewer', viewport })
    const batches = listenTo(page)
    const plan = page.getByRole('region', { name: 'Plan', exact: true })
    const list = page.getByRole('region', { name: 'People and assets' })
    const listed = (id: string) => list.getByRole('button', { name: id, exact: true })
    const legend = page.getByRole('list', { name: 'Legend' })
    await publish(everywhere)
    await page.goto(`/live/${FLOOR}?view=5.0,5.0,${scale}`)
    await page.getByText(/^\d+ in this part of the floor$/).waitFor()
    await listed('T0').waitFor()
    t.notMatch(await legend.innerText(), /Employee\s+\d/)

    batches.length = 0
    await publish(everywhere)
    await eventually(() => batches.length > 0)
    t.ok(batches.every((ids) => ids.includes('T0') && !ids.includes(LAST) && ids.length <= 20))

    // A transmitter that leaves the part is not shown at its last place there.
    await publish([['T0', [57, 23]]])
    await listed('T0').waitFor({ state: 'detached' })
    await page.getByText('Live', { exact: true }).waitFor()

    // Panning to the right end never empties the list.
    let fewest = everywhere.length
    await plan.focus()
    await eventually(async () => {
      await publish(everywhere.slice(1))
      await plan.press('ArrowRight')
      fewest = Math.min(fewest, await list.getByRole('button').count())
      return (await listed('T11').count()) === 1
    })
    t.ok(fewest > 0, `${fewest} listed while panning`)
    t.equal(await listed('T1').count(), 0)

    // The part follows the selected transmitter.
    await listed('T11').click()
    for (let x = 57; x > 30; x -= 3) {
      await publish([['T11', [x, 2.5]]])
      await listed('T11').waitFor()
    }
    await plan.getByText('T11', { exact: true }).waitFor()
    await page.getByText(/^\d+ in this part of the floor$/).waitFor()
    await listed('T10').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Fit' }).click()
    await page.getByText('60 on this floor').waitFor()
    await legend.getByText('Employee 60').waitFor()
    t.same(pageErrors, [])
  })
}

t.test('a part of the floor without people is live', async (t) => {
  const { page, pageErrors } = await openDemoPage(t, browser, stack, { as: 'viewer' })
  await publish(everywhere.map(([id]): [string, readonly [number, number]] => [id, [55, 20]]))
  await page.goto(`/live/${FLOOR}?view=5.0,5.0,110`)
  await page.getByText('No people or assets in this part of the floor.').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  t.same(pageErrors, [])
})
