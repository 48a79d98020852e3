import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { required } from '../../../../test/helper/required.js'
import type { PageTests } from '../page/page-tests.js'

const PHONE = { viewport: { width: 390, height: 844 } }

/** The audit log, first steps, help, and lists on phones. */
export const guidance = async (t: Test, { open }: PageTests): Promise<void> => {
  await t.test(
    'the audit log has sentences with both values, and filters by the person concerned',
    { buffered: true },
    async (t) => {
      const { page, context, pageErrors } = await open(t, { as: 'admin' })
      await page.goto('/settings')
      await page.getByLabel('Delete positions after (days)').fill('5')
      await page
        .locator('section', { has: page.getByRole('heading', { name: 'Privacy' }) })
        .getByRole('button')
        .click()
      await page.getByText('Privacy saved').waitFor()
      const { name, transmitterId } = (await (await context.request.get('/api/personnel/12')).json()).data
      await page.goto(`/live/f-1?selected=${transmitterId}`)
      await page.locator('#carrier-name').getByText(name).waitFor()
      await page.goto('/audit')
      const sentence = 'Alex Admin changed the time after which positions are deleted from 7 days to 5 days.'
      await page.getByText(sentence).waitFor()
      await page
        .getByRole('link', { name: /^Entry of/ })
        .first()
        .click()
      await page.getByRole('heading', { name: 'Raw entry' }).waitFor()
      await page.goBack()
      await page.getByLabel('Person concerned').selectOption({ label: name })
      await page.getByText(`Alex Admin looked up where ${name} is.`).first().waitFor()
      await eventually(async () => (await page.getByText(sentence).count()) === 0)
      t.same(pageErrors, [])
    }
  )

  await t.test(
    'the first steps are dismissed once, and help opens the section of the page',
    { buffered: true },
    async (t) => {
      const { page, context, pageErrors } = await open(t, { as: 'admin', isFirstVisit: true })
      await page.goto('/live/f-1')
      await page.getByRole('heading', { name: 'First steps' }).waitFor()
      await page.getByRole('button', { name: 'Got it' }).click()
      await page.goto('/zones')
      const [help] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('link', { name: 'Help', exact: true }).click()
      ])
      await help.waitForURL('**/help/zones')
      await eventually(async () => (await help.getByRole('heading', { level: 2 }).first().innerText()) === 'Zones')
      await page.goto('/live/f-1')
      await page.getByRole('button', { name: 'Play back' }).waitFor()
      t.equal(await page.getByRole('heading', { name: 'First steps' }).count(), 0)
      t.same(pageErrors, [])
    }
  )

  await t.test(
    'on a phone, lists have no header above their cards, and the selected card is in view',
    { buffered: true },
    async (t) => {
      const { page, pageErrors } = await open(t, { as: 'admin', ...PHONE })
      await page.goto('/receivers')
      await page.locator('td .chip').first().waitFor()
      t.equal(await page.locator('thead').isVisible(), false)
      await page.getByLabel('Sort by').selectOption('name desc')
      await page.waitForURL(/sort=name&order=desc/)
      await page.goto('/live/f-1')
      await page.locator('.entry').nth(5).click()
      const [card, plan] = [page.locator('.details'), page.locator('.plan-column')]
      await eventually(async () => {
        const [shown, above] = [required(await card.boundingBox()), required(await plan.boundingBox())]
        return shown.y >= above.y + above.height - 1 && shown.y < 700
      })
      await page.mouse.wheel(0, 600)
      await eventually(async () => required(await plan.locator('.plan-status').boundingBox()).y > 0)
      t.same(pageErrors, [])
    }
  )
}
