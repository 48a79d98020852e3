import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { portOf } from '../../../../test/helper/address.js'
import { eventually } from '../../../../test/helper/eventually.js'
import type { PageTests } from './page-tests.js'

export const security = async (t: Test, { stack, open }: PageTests): Promise<void> => {
  await t.test('the security of the page', { buffered: true }, async (t) => {
    t.test('the CSP blocks injected inline code', async (t) => {
      const { page, pageErrors } = await open(t, { expected: /^error/ })
      await page.goto('/login')
      await page.getByLabel('Password').waitFor()
      await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<p style="color: red">x</p>')
        document.body.append(Object.assign(document.createElement('script'), { textContent: 'globalThis.planted = true' }))`)
      // The browser reports violations asynchronously.
      await eventually(() => pageErrors.length >= 2)
      t.equal(await page.evaluate('globalThis.planted'), undefined)
      t.same(pageErrors.toSorted(), ['policy: script-src-elem inline', 'policy: style-src-attr inline'])
    })

    t.test('a page on another origin cannot make changes for a signed-in user', async (t) => {
      const { page } = await open(t, { as: 'admin', extraHTTPHeaders: {} })
      const otherOrigin = createServer((_request, response) => {
        response.setHeader('content-type', 'text/html')
        response.end(`<form method="post" enctype="text/plain" action="${stack.url}/api/personnel">
          <input name='{"firstName":"Mallory","x":"' value='"}'><button>Win a prize</button></form>`)
      })
      otherOrigin.listen(0)
      await once(otherOrigin, 'listening')
      t.teardown(() => otherOrigin.close())
      // The first is same-site, so cookies are sent; the second is cross-site.
      for (const host of ['localhost', '127.0.0.1']) {
        await page.goto(`http://${host}:${portOf(otherOrigin)}/`)
        const posted = page.waitForResponse('**/api/personnel')
        await page.getByRole('button', { name: 'Win a prize' }).click()
        t.equal((await posted).status(), 403, `a form on ${host}`)
      }
    })
  })
}
