import type { ServerResponse } from 'node:http'
import type { BrowserContext, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { ADMIN_PASSWORD } from '../helper/admin.js'
import { ADMIN_ENV, openAdminPage } from '../helper/admin-page.js'
import { startBrowser } from '../helper/browser.js'
import { eventually } from '../helper/eventually.js'
import { connectedClient } from '../helper/raw-client.js'
import { startRelay } from '../helper/relay.js'

t.setTimeout(300_000)
const NAMESPACES = [{ name: 'loose', allow_subscribe_for_client: true }]
const browser = await startBrowser(t)

/** A relay, and its open live streams. */
const startWatchedRelay = async (t: Test) => {
  const relay = await startRelay(t, { channel: { namespaces: NAMESPACES } }, ADMIN_ENV)
  const streams = new Map<ServerResponse, string>()
  relay.running.server.on('request', ({ url = '' }, response: ServerResponse) => {
    if (!url.startsWith('/admin/api/live')) return
    streams.set(response, url)
    response.once('close', () => streams.delete(response))
  })
  return { relay, streams }
}

const openTab = async (context: BrowserContext, address: string): Promise<Page> => {
  const page = await context.newPage()
  await page.goto(address)
  await page.getByText('Live', { exact: true }).waitFor()
  return page
}

const connections = (page: Page, count: number) =>
  page.getByRole('region', { name: 'Connections', exact: true }).getByText(String(count), { exact: true })

t.test("tabs of the operators' page", async (t) => {
  const { relay, streams } = await startWatchedRelay(t)
  const { context, page: first, pageErrors } = await openAdminPage(t, browser, relay)
  await first.goto('/admin')
  await first.getByText('Live', { exact: true }).waitFor()

  t.test('eight tabs share one stream, although HTTP/1.1 allows six connections', async (t) => {
    for (let count = 1; count < 8; count++) await openTab(context, '/admin')
    t.equal(streams.size, 1)
    await connectedClient(t, relay.url)
    for (const page of context.pages()) await connections(page, 1).waitFor()
  })

  t.test('a new tab shows the figures that the others have received', async () => {
    const page = await openTab(context, '/admin')
    await page.getByRole('img', { name: /^Connections over the last 15 minutes: .*between 0 and 1$/ }).waitFor()
  })

  t.test('each tab receives the publications of its channel over the shared stream', async (t) => {
    const channels = ['loose:a', 'loose:b']
    const tabs: Page[] = []
    for (const channel of channels) tabs.push(await openTab(context, `/admin#/channel?name=${channel}`))
    for (const [index, page] of tabs.entries()) {
      const shown = page.getByText(`{"for":"${channels[index]}"}`).first()
      await eventually(async () => {
        for (const channel of channels) await relay.publish(channel, { for: channel })
        return shown.isVisible()
      })
      t.equal(await page.getByText(`{"for":"${channels[1 - index]}"}`).count(), 0)
    }
    await eventually(() => streams.size === 1)
    t.match([...streams.values()], [/channel=loose%3Aa&channel=loose%3Ab/])
    for (const page of tabs) await page.close()
    await eventually(() => streams.size === 1 && [...streams.values()].every((url) => !url.includes('channel=')))
  })

  t.test('the stream continues when the tab that opened it is closed', async (t) => {
    const [, second] = context.pages()
    await first.close()
    await connectedClient(t, relay.url, 'ada')
    await connectedClient(t, relay.url, 'bo')
    if (second !== undefined) await connections(second, 2).waitFor()
    t.equal(streams.size, 1)
  })

  t.test('sign-out and sign-in in one tab apply to all tabs', async (t) => {
    const [one, ...others] = context.pages()
    await one?.getByRole('button', { name: 'Sign out' }).click()
    for (const page of others) await page.getByRole('heading', { name: 'Sign in to the relay' }).waitFor()
    await eventually(() => streams.size === 0)
    await one?.getByLabel('Password').fill(ADMIN_PASSWORD)
    await one?.getByRole('button', { name: 'Sign in' }).click()
    for (const page of others) await page.getByText('Live', { exact: true }).waitFor()
    t.equal(streams.size, 1)
  })

  t.same(pageErrors, [])
})

/** Browsers in which the shared worker cannot be used. */
const WITHOUT_WORKER: readonly (readonly [reason: string, script: string])[] = [
  ['has no shared workers', 'delete globalThis.SharedWorker'],
  ['does not permit shared workers', 'globalThis.SharedWorker = class { constructor() { throw new Error("denied") } }'],
  [
    'cannot load the shared worker',
    `globalThis.SharedWorker = class extends EventTarget {
      port = new MessageChannel().port1
      constructor() {
        super()
        setTimeout(() => this.dispatchEvent(new Event('error')))
      }
    }`
  ]
]
t.test('tabs without a shared worker', async (t) => {
  const { relay, streams } = await startWatchedRelay(t)
  for (const [reason, script] of WITHOUT_WORKER) {
    t.test(`each tab has its own stream if the browser ${reason}`, async (t) => {
      const { context, page: first, pageErrors } = await openAdminPage(t, browser, relay)
      await context.addInitScript(script)
      await first.goto('/admin')
      await first.getByText('Live', { exact: true }).waitFor()
      const second = await openTab(context, '/admin#/channel?name=loose:a')
      await eventually(async () => {
        await relay.publish('loose:a', { reason })
        return second.getByText(JSON.stringify({ reason })).first().isVisible()
      })
      t.equal(streams.size, 2)
      t.same(pageErrors, [])
      await context.close()
      await eventually(() => streams.size === 0)
    })
  }

  t.test('a tab opens its own stream if the shared worker is silent', async (t) => {
    const { context, page, pageErrors } = await openAdminPage(t, browser, relay)
    await context.addInitScript(
      'globalThis.SharedWorker = class extends EventTarget { port = new MessageChannel().port1 }'
    )
    await page.clock.install()
    await page.goto('/admin')
    await page.getByText('Connecting…').waitFor()
    await page.clock.runFor(30_000)
    await page.getByText('Live', { exact: true }).waitFor()
    t.equal(streams.size, 1)
    t.same(pageErrors, [])
  })
})
