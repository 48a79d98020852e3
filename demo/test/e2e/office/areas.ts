import type { Test } from 'tap'
import { CLIENT_ERRORS, type PageTests } from '../page/page-tests.js'

const square = (size: number) => [
  { x: 1, y: 1 },
  { x: 1 + size, y: 1 },
  { x: 1 + size, y: 1 + size },
  { x: 1, y: 1 + size }
]

export const areas = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test('two users who edit the area of a zone choose which one to keep', { buffered: true }, async (t) => {
    const { page, pageErrors, findings } = await open(t, { as: 'operator', expected: CLIENT_ERRORS })
    const { request } = (await open(t, { as: 'admin' })).context
    const { csrfToken } = await (await request.get('/api/auth/csrf-token')).json()
    const draw = (size: number) =>
      request.put('/api/zones/5', { headers: { 'x-csrf-token': csrfToken }, data: { polygon: square(size) } })
    await draw(14)
    const move = async (x: string): Promise<void> => {
      await page.getByLabel('x of point 2 in metres').fill(x)
      await page.getByLabel('x of point 2 in metres').press('Tab')
      await page.getByRole('button', { name: 'Save area' }).click()
    }
    await page.goto('/zones/5/area')
    await page.getByText('Area: 196.0 m²').waitFor()
    await draw(16)
    await move('17')
    const conflict = page.getByRole('group', { name: 'Area' })
    await page.getByText('Alex Admin has changed this record while you edited it.').waitFor()
    await conflict.getByLabel('Changed to: 4 points, 256.0 m²').check()
    t.same(await findings(), [])
    await page.getByRole('button', { name: 'Save area' }).click()
    await page.getByText('Area: 256.0 m²').waitFor()
    t.equal(await page.getByRole('button', { name: 'Save area' }).isDisabled(), true, 'it is stored already')

    await draw(18)
    await move('20')
    await conflict.getByLabel(/^Your change: 4 points/).waitFor()
    await page.getByRole('button', { name: 'Save area' }).click()
    await page.waitForURL('**/zones')
    const { data } = await (await request.get('/api/zones/5')).json()
    t.same(
      data.polygon.map(({ x }: { x: number }) => x),
      [1, 20, 17, 1]
    )
    t.same(pageErrors, [])
  })
}
