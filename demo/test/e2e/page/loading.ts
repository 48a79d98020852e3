import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ROOT } from '../../../../scripts/lib/root.js'
import { eventually } from '../../../../test/helper/eventually.js'
import { holdRequests } from '../../../../test/helper/window.js'
import type { PageTests } from './page-tests.js'

export const loading = async (t: Test, { stack, open }: PageTests): Promise<void> => {
  await t.test('the demo page', { buffered: true }, async (t) => {
    t.test('the demo page shows a styled shell before its script has loaded', async (t) => {
      const { page, pageErrors } = await open(t)
      const release = await holdRequests(page, '**/assets/*.js')
      await page.goto('/', { waitUntil: 'commit' })
      const shell = page.getByRole('status').filter({ hasText: 'Gatehouse' })
      await shell.waitFor()
      await page.waitForFunction("getComputedStyle(document.querySelector('.starting')).display === 'grid'")
      t.equal(await page.getByLabel('Password').count(), 0)

      release()
      await page.getByLabel('Password').waitFor()
      t.equal(await shell.count(), 0, 'the app takes its place')
      t.same(pageErrors, [])
    })

    t.test("every page is sent with a CSP without 'unsafe-inline'", async (t) => {
      for (const path of ['/', '/login', '/live/f-1']) {
        const { headers } = await fetch(`${stack.url}${path}`, { headers: { accept: 'text/html' } })
        t.match(headers.get('content-security-policy'), "script-src 'self'")
        t.notMatch(headers.get('content-security-policy'), 'unsafe-inline')
      }
    })

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

    for (const encoding of ['br', 'gzip']) {
      t.test(`the demo page is sent compressed to browsers that accept ${encoding}`, async (t) => {
        const response = await fetch(`${stack.url}/`, { headers: { 'accept-encoding': encoding, accept: 'text/html' } })
        t.equal(response.headers.get('content-encoding'), encoding)
        t.match(response.headers.get('vary'), /accept-encoding/i)
        t.equal(await response.text(), readFileSync(join(ROOT, 'dist/web/index.html'), 'utf8'))
      })
    }
  })
}
