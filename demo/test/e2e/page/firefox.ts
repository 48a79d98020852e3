import type { Test } from 'tap'
import { eventually } from '../../../../test/helper/eventually.js'
import { DEMO_PASSWORD } from '../../helper/demo-stack.js'
import { openFirefox } from '../../helper/firefox.js'
import { type PageTests, PLAN } from './page-tests.js'

const ENTER = `(selector, text) => {
  const input = document.querySelector(selector)
  input.value = text
  input.dispatchEvent(new Event('input', { bubbles: true }))
}`

/** All other tests use Chromium. */
export const inFirefox = async (t: Test, { stack }: PageTests): Promise<void> => {
  await t.test('a user signs in with Firefox, and markers move', { buffered: true }, async (t) => {
    const { goTo, evaluate, errors } = await openFirefox(t)
    await goTo(`${stack.url}/live/f-1`)
    await eventually(() => evaluate("document.querySelector('[type=password]') !== null"))
    await evaluate(`(${ENTER})('[type=email]', 'operator@example.com')`)
    await evaluate(`(${ENTER})('[type=password]', '${DEMO_PASSWORD}')`)
    await evaluate("document.querySelector('form').requestSubmit()")
    await eventually(() => evaluate("document.body.innerText.includes('Last update: just now')"))
    const picture = (): Promise<unknown> => evaluate(`document.querySelector('${PLAN}').toDataURL()`)
    const first = await picture()
    await eventually(async () => (await picture()) !== first)
    t.same(errors, [])
  })
}
