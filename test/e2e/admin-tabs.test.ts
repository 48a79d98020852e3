import type { ServerResponse } from 'node:http'
import type { BrowserContext, Page } from 'playwright-core'
import t from 'tap'
import { ADMIN_PASSWORD } from '../helper/admin.js'
import { ADMIN_ENV, openAdminPage } from '../helper/admin-page.js'
import { startBrowser } from '../helper/browser.js'
import { eventually } from '../helper/eventually.js'
import { connectedClient } from '../helper/raw-client.js'
import { startRelay } from '../helper/relay.js'

const NAMESPACES = [
  { name: 'loose', allow_subscribe_for_client: true },
  { name: 'kept', allow_subscribe_for_client: true, history_size: 10, history_ttl: '300s' }
]
const browser = await startBrowser(t)

const openTab = async (context: BrowserContext, address: string): Promise<Page> => {
  const page = await context.newPage()
  await page.goto(address)
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

/** Playwright shows all tabs at the same time, so the tests set their visibility. */
const setHidden = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))`)

const connections = (page: Page, count: number) =>
  page.getByRole('region', { name: 'Connections', exact: true }).getByText(String(count), { exact: true })

t.test("tabs of the operators' page", async (t) => {
  const relay = await startRelay(t, { channel: { namespaces: NAMESPACES } }, ADMIN_ENV)
  /** The open live streams with their URLs. */
  const streams = new Map<ServerResponse, string>()
  relay.running.server.on('request', ({ url = '' }, response: ServerResponse) => {
    if (!url.startsWith('/admin/api/live')) return
    streams.set(response, url)
    response.once('close', () => streams.delete(response))
  })
  const { context, page: first, pageErrors } = await openAdminPage(t, browser, relay)
  await first.goto('/admin')
  await first.getByText('Live', { exact: true }).waitFor()

  t.test('of eight tabs the visible one and the one that was hidden last have a stream', async (t) => {
    for (let count = 1; count < 8; count++) {
      await setHidden(context.pages().at(-1) ?? first, true)
      await openTab(context, '/admin')
    }
    await eventually(() => streams.size === 2)
    await connectedClient(t, relay.url)
    for (const page of context.pages().slice(-2)) await connections(page, 1).waitFor()
    t.equal(await connections(first, 1).count(), 0, 'the stream of an earlier tab is paused')
  })

  t.test('a paused tab continues with current figures when it is shown', async (t) => {
    await connectedClient(t, relay.url)
    await setHidden(context.pages().at(-1) ?? first, true)
    await setHidden(first, false)
    await connections(first, 1).waitFor()
    await eventually(() => streams.size === 2)
  })

  t.test('the tab that was hidden last receives the publications of its channel', async () => {
    const page = await openTab(context, '/admin#/channel?name=loose:a')
    await setHidden(page, true)
    await eventually(async () => {
      await relay.publish('loose:a', { for: 'a' })
      return page.getByText('{"for":"a"}').first().isVisible()
    })
    await page.close()
  })

  t.test('a paused tab loads missed publications from the history when it is shown', async (t) => {
    const page = await openTab(context, '/admin#/channel?name=kept:a')
    await relay.publish('kept:a', { number: 1 })
    await page.getByText('{"number":1}').waitFor()
    await setHidden(page, true)
    await setHidden(first, true)
    await eventually(() => [...streams.values()].every((url) => !url.includes('channel=')))
    await relay.publish('kept:a', { number: 2 })
    await setHidden(page, false)
    await page.getByText('{"number":2}').waitFor()
    t.equal(await page.locator('ol li').count(), 2, 'none is shown twice')
    await page.close()
    await setHidden(first, false)
  })

  t.test('one stream follows the channel of its tab', async () => {
    const page = await openTab(context, '/admin#/channel?name=loose:b')
    const urls = (): string[] => [...streams.values()].filter((url) => url.includes('channel='))
    await eventually(() => urls().length === 1)
    await page.goto('/admin#/channel?name=loose:c')
    await eventually(() => urls().length === 1 && urls()[0]?.endsWith('channel=loose%3Ac') === true)
    await page.goto('/admin#/channels')
    // The stream with the channel may end before the one without it begins.
    await eventually(() => urls().length === 0 && streams.size > 0)
    await page.close()
  })

  t.test('sign-out and sign-in in one tab apply to all tabs', async () => {
    const [one, ...others] = context.pages()
    await one?.getByRole('button', { name: 'Sign out' }).click()
    for (const page of others) await page.getByRole('heading', { name: 'Sign in to the relay' }).waitFor()
    await eventually(() => streams.size === 0)
    await one?.getByLabel('Password').fill(ADMIN_PASSWORD)
    await one?.getByRole('button', { name: 'Sign in' }).click()
    for (const page of others) await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await one?.getByText('Live', { exact: true }).waitFor()
    await eventually(() => streams.size <= 2)
  })

  t.same(
    pageErrors.filter((text) => !text.includes('401')),
    []
  )
})
