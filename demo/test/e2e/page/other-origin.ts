import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { portOf } from '../../../../test/helper/address.js'
import type { PageTests } from './page-tests.js'

export const otherOrigin = async (t: Test, { stack, open }: PageTests): Promise<void> => {
  await t.test('a page on another origin', { buffered: true }, async (t) => {
    t.test('a page on another origin cannot make changes for a signed-in user', async (t) => {
      const { page } = await open(t, { as: 'admin', extraHTTPHeaders: {} })
      const request = page.context().request
      const people = async (): Promise<number> =>
        (await (await request.get('/api/personnel?limit=1')).json()).meta.total
      const before = await people()

      const otherOrigin = createServer((_request, response) => {
        response.setHeader('content-type', 'text/html')
        response.end(`<form method="post" enctype="text/plain" action="${stack.url}/api/personnel">
          <input name='{"firstName":"Mallory","x":"' value='"}'><button>Win a prize</button></form>`)
      })
      otherOrigin.listen(0)
      await once(otherOrigin, 'listening')
      t.teardown(() => otherOrigin.close())
      const port = portOf(otherOrigin)

      // The first is same-site, so cookies are sent; the second is cross-site.
      for (const host of ['localhost', '127.0.0.1']) {
        await page.goto(`http://${host}:${port}/`)
        const posted = page.waitForResponse('**/api/personnel')
        await page.getByRole('button', { name: 'Win a prize' }).click()
        t.equal((await posted).status(), 403, `a form on ${host}`)

        await page.goto(`http://${host}:${port}/`)
        const scripted = page.waitForResponse('**/api/personnel')
        await page.evaluate((url) => {
          const init = {
            method: 'POST',
            mode: 'no-cors',
            credentials: 'include',
            body: '{"firstName":"Mallory"}'
          } as const
          void fetch(url, init).catch(() => undefined)
        }, `${stack.url}/api/personnel`)
        t.equal((await scripted).status(), 403, `a script on ${host}`)
      }
      t.equal(await people(), before)
    })
  })
}
