import t from 'tap'
import { PATIENCE_MS, startBrowser } from '../helper/browser.js'
import { startGateway } from '../helper/gateway.js'

t.test('the API description shows its operations in a browser under the strict CSP', async (t) => {
  const [{ url }, browser] = await Promise.all([
    startGateway(t, { env: { API_DOCS: 'true', CSP_INLINE: 'refuse', CSP_MODE: 'hardened' } }),
    startBrowser(t)
  ])
  const page = await browser.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text())
  })

  await page.goto(`${url}/api/docs`)
  await page.getByText('Zones', { exact: false }).first().waitFor({ timeout: PATIENCE_MS })
  await page.locator('.opblock-tag').first().click({ timeout: PATIENCE_MS })
  await page.locator('.opblock').first().waitFor({ timeout: PATIENCE_MS })

  t.same(problems, [])
})
