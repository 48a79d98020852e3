import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../../scripts/lib/root.js'
import { startBrowser } from '../helper/browser.js'
import { startGateway } from '../helper/gateway.js'
import { checkLayouts } from '../helper/layouts.js'
import { openWindow } from '../helper/window.js'

const ENV = { API_DOCS: 'true', CSP_INLINE: 'refuse', CSP_MODE: 'hardened' }

t.test('the API description in a browser under the strict CSP', async (t) => {
  const browser = await startBrowser(t)

  t.test('the page opens operations and schemas, fits all widths and is accessible', async (t) => {
    const { url } = await startGateway(t, { env: ENV })
    const opened = await openWindow(t, browser, url)
    const { page, pageErrors } = opened
    await page.goto('/api/docs')
    await checkLayouts(t, opened, 'closed')
    await page.getByRole('navigation').getByRole('link', { name: 'Zones' }).click()
    const operation = page.locator('details', {
      has: page.getByRole('heading', { name: 'POST /api/zones', exact: true })
    })
    await operation.locator('summary').focus()
    await page.keyboard.press('Enter')
    await operation.getByText('Requires session and csrf.').waitFor()
    await checkLayouts(t, opened, 'an operation')
    await operation.getByRole('link', { name: 'ErrorBody' }).first().click()
    await page.locator('#schema-ErrorBody').waitFor()
    t.notMatch(await page.locator('html').innerHTML(), /swagger|smartbear/i)
    t.same(pageErrors, [])
  })

  t.test('a document with all kinds of parameters and schemas fits a phone and is accessible', async (t) => {
    const file = join(ROOT, 'test/openapi/fixtures/shop.yaml')
    const { url } = await startGateway(t, { env: { ...ENV, GATEWAY_ROUTES: file } })
    const opened = await openWindow(t, browser, url, { viewport: { width: 390, height: 844 } })
    const { page, pageErrors } = opened
    await page.goto('/api/docs')
    await page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    t.same(await opened.findings(), [])
    t.same(pageErrors, [])
  })
})
