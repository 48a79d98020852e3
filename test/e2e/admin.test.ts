import type { Centrifuge } from 'centrifuge'
import t, { type Test } from 'tap'
import { ADMIN_PASSWORD } from '../helper/admin.js'
import { ADMIN_ENV, check, figure, openAdminPage } from '../helper/admin-page.js'
import { startBrowser } from '../helper/browser.js'
import { eventually } from '../helper/eventually.js'
import { checkLayouts } from '../helper/layouts.js'
import { connectedClient, openClient } from '../helper/raw-client.js'
import { collect, connectClient, event, officialClient, startRelay, subscribeTo } from '../helper/relay.js'
import { API_KEY, HMAC_SECRET, relayToken } from '../helper/relay-rules.js'
import { openWindow } from '../helper/window.js'

// All tests share one relay and one browser; each test has its own window, users and channels.
const NAMESPACES = [
  { name: 'floor', allow_subscribe_for_client: true, history_size: 10, history_ttl: '300s' },
  {
    name: 'checked',
    allow_subscribe_for_client: true,
    presence: true,
    history_size: 10,
    history_ttl: '300s',
    schema: 'PositionBatch'
  },
  { name: 'loose', allow_subscribe_for_client: true },
  { name: 'fleet', subscription_type: 'map', map: { mode: 'recoverable', key_ttl: '600s' } }
]
const relay = await startRelay(
  t,
  {
    client: { user_tokens_invalidate: { enabled: true } },
    // Nothing listens there.
    rpc: { proxy: { endpoint: 'http://127.0.0.1:9/rpc' }, without_namespace: { proxy_enabled: true } },
    channel: { namespaces: NAMESPACES }
  },
  ADMIN_ENV
)
const browser = await startBrowser(t)

const CLIENT_ERROR = /Failed to load resource: the server responded with a status of 4\d\d/
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
/** By how many pixels the content is wider than the page. */
const OVERFLOW =
  'Math.max(document.documentElement.scrollWidth - Math.ceil(document.documentElement.getBoundingClientRect().width), 0)'
/** The same for a list. */
const TABLE_OVERFLOW =
  '(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector(".table-box"))'
/** Whether the current match is inside its scrolled box. */
const IS_MATCH_IN_VIEW = `(() => {
  const [match, box] = ['[aria-current=true]', 'ol.box'].map((part) => document.querySelector(part).getBoundingClientRect())
  return match.top >= box.top && match.bottom <= box.bottom
})()`
/**
 * Closes the dialog as the Escape key does and presses the button that has the focus again, before the browser emits the close
 * event of the dialog. Vue updates in microtasks, the event is a task. Whether the dialog is open after it.
 */
const REOPEN_DIALOG = `(async () => {
  const dialog = document.querySelector('dialog[open]')
  const closed = new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }))
  dialog.dispatchEvent(new Event('cancel', { cancelable: true }))
  for (let turn = 0; dialog.open && turn < 100; turn++) await null
  if (dialog.open) return false
  document.activeElement.click()
  await closed
  await new Promise(requestAnimationFrame)
  return dialog.open
})()`
const WIDTHS = [390, 768, 1440, 2560] as const
const VIEWS = ['overview', 'checks', 'channels', 'connections', 'backends', 'config', 'channel?name=checked:a'] as const

/** The official client, subscribed to a channel. */
const subscribedClient = async (t: Test, user: string, channel: string) => {
  const getToken = async (): Promise<string> => relayToken({ sub: user })
  const client = await connectClient(officialClient(t, relay, 'websocket', { getToken }))
  const received = collect(await subscribeTo(client, channel))
  return { client, received }
}
const disconnected = (client: Centrifuge): Promise<unknown> => event(client, 'disconnected')

t.test("the operators' page", async (t) => {
  t.test('the page rejects a wrong password and locks out an address after five attempts', async (t) => {
    const { page, pageErrors } = await openWindow(t, browser, relay.url, { expected: CLIENT_ERROR })
    const attempt = async (password: string): Promise<number> => {
      const responded = page.waitForResponse('**/sign-in')
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      return (await responded).status()
    }
    /** The form is submitted again only after it has cleared the password and shows the result. */
    const fail = async (password: string): Promise<void> => {
      t.not(await attempt(password), 204)
      await page.getByRole('alert').waitFor()
    }
    await page.goto('/admin#/channels')
    await fail('a guess')
    await page.getByText('Wrong password.').waitFor()
    await attempt(ADMIN_PASSWORD)
    await page.getByRole('heading', { name: 'Channels' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to the relay' }).waitFor()

    for (let guess = 0; guess < 6; guess++) await fail(`guess ${guess}`)
    await page.getByText(/Too many attempts\. Try again in 1\d minutes\./).waitFor()
    t.ok(await page.getByRole('button', { name: 'Sign in' }).isDisabled())
    t.same(pageErrors, [])
  })

  t.test('the overview shows and draws figures that change with the traffic', async (t) => {
    const opened = await openAdminPage(t, browser, relay)
    const { page, pageErrors } = opened
    const picture = (): Promise<string> =>
      page.evaluate(`document.querySelector('[aria-label="Connections"] canvas')?.toDataURL() ?? ''`)
    await page.goto('/admin')
    await figure(opened, 'Connections').getByText('0', { exact: true }).waitFor()
    const before = await picture()

    await subscribedClient(t, 'ada', 'floor:1')
    await subscribedClient(t, 'bo', 'floor:1')
    await figure(opened, 'Connections').getByText('2', { exact: true }).waitFor()
    await figure(opened, 'Subscriptions').getByText('2', { exact: true }).waitFor()
    for (const title of ['Publishes per second', 'Deliveries per second', 'Bytes per second']) {
      const value = figure(opened, title)
      await eventually(async () => {
        await relay.publish('floor:1', { some: 'data' })
        return !/^[0–]( B\/s)?$/.test(await value.innerText())
      })
    }
    await figure(opened, 'Memory').getByText('MB').waitFor()
    await page.getByRole('img', { name: /^Connections over the last 15 minutes: now 2, between 0 and 2$/ }).waitFor()
    await eventually(async () => (await picture()) !== before)
    t.equal(await page.getByLabel('Show').count(), 0, 'no node selection for one node')
    t.same(pageErrors, [])
  })

  t.test('the channel list finds one of 6,000 channels', async (t) => {
    const names = Array.from({ length: 6000 }, (_, index) => `floor:room-${index}`)
    for (const part of [names.slice(0, 3000), names.slice(3000)])
      await relay.api('broadcast', { channels: part, data: {} })
    const { page, pageErrors } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/channels')
    await page.getByText(/^6,\d\d\d in total; the list shows the first 5,000$/).waitFor()
    const rows = page.getByRole('region', { name: 'Channels' }).locator('tbody tr')
    t.equal(await rows.count(), 50, 'the browser receives one page')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('51–100 of 5000').waitFor()

    await page.getByRole('searchbox').fill('ROOM-499')
    await page.getByText('11 found').waitFor()
    await page.getByRole('button', { name: 'Channel', exact: true }).click()
    await page
      .getByRole('columnheader', { name: 'Channel', exact: true })
      .and(page.locator('[aria-sort=ascending]'))
      .waitFor()
    await rows.first().getByText('floor:room-499', { exact: true }).waitFor()
    await page.reload()
    await page.getByText('11 found').waitFor()
    await page.getByRole('link', { name: 'floor:room-4995' }).click()
    await page.getByRole('heading', { name: 'floor:room-4995' }).waitFor()
    t.same(pageErrors, [])
  })

  t.test('the channel page asks before it publishes a test message and shows schema errors', async (t) => {
    const { received } = await subscribedClient(t, 'cy', 'checked:1')
    const { page, pageErrors } = await openAdminPage(t, browser, relay, { expected: CLIENT_ERROR })
    await page.goto('/admin#/channel?name=checked:1')
    await page.getByText('Must match PositionBatch').waitFor()
    await page.getByRole('region', { name: 'Presence' }).getByRole('listitem').filter({ hasText: 'cy' }).waitFor()

    const data = page.getByLabel('Data, as JSON')
    const example = await eventually(() => data.inputValue())
    t.match(JSON.parse(example), { type: 'position-batch' }, 'the example of the schema')
    const publish = async (text: string): Promise<void> => {
      await data.fill(text)
      await page.getByRole('button', { name: 'Publish', exact: true }).click()
    }
    const confirm = page.getByRole('button', { name: 'Publish to all of them' })
    await publish('{"type":')
    await page.getByText(/^Invalid JSON/).waitFor()
    await publish('{"type":"position-batch","data":"none"}')
    await confirm.click()
    await data.and(page.locator('[aria-invalid=true]')).waitFor()
    await page.getByText(/data.*array/i).waitFor()
    await page.getByRole('button', { name: 'Insert example' }).click()
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await page.getByText('1 client will receive the message.').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    t.same(received.data, [], 'nothing is published before the confirmation')

    const batch = { type: 'position-batch', data: [] }
    await publish(JSON.stringify(batch))
    await confirm.click()
    await page.getByText('Published at offset 1.').waitFor()
    await received.until(({ length }) => length === 1)
    t.same(received.data, [batch])
    await page
      .getByRole('list', { name: /Latest publications/ })
      .getByText(JSON.stringify(batch))
      .waitFor()
    t.same(pageErrors, [])
  })

  t.test('the pages lead from a channel to its subscribers, to a connection and to its channels', async (t) => {
    const channel = `floor:${'long-name-'.repeat(24)}`
    const { client } = await subscribedClient(t, 'gil', channel)
    await subscribeTo(client, 'floor:other')
    const { page, pageErrors, findings } = await openAdminPage(t, browser, relay)
    await page.goto(`/admin#/channels?search=long-name`)
    await page.getByRole('link', { name: /^1 subscribers of/ }).click()
    await page.getByRole('heading', { name: `Subscribers of ${channel}` }).waitFor()
    await page.getByRole('cell', { name: /^js\b/ }).waitFor()
    await page.getByRole('link', { name: 'gil' }).click()
    await page.getByRole('heading', { name: 'gil' }).waitFor()
    const channels = page.getByRole('region', { name: 'Channels' }).locator('tbody tr')
    await channels.nth(1).waitFor()
    t.match(await page.locator('dl').innerText(), /js[\s\S]*websocket, json/)
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      t.equal(await page.evaluate(OVERFLOW), 0, `${width} px`)
    }
    t.same(await findings(), [])

    await page.getByRole('searchbox').fill('other')
    await page.getByText('1–1 of 1').waitFor()
    await page.getByRole('link', { name: 'floor:other' }).click()
    await page.getByRole('heading', { name: 'floor:other' }).waitFor()
    await page.getByRole('region', { name: 'Subscribers' }).getByRole('link', { name: 'gil' }).click()
    await page.getByRole('button', { name: 'Disconnect' }).click()
    await page.getByRole('button', { name: 'Close this connection' }).click()
    await page.getByText(/^Disconnected at \d\d:\d\d:\d\d\./).waitFor()
    t.equal(await page.getByRole('button', { name: 'Disconnect' }).count(), 0)
    t.same(
      pageErrors.filter((text) => !CLIENT_ERROR.test(text)),
      []
    )
  })

  t.test('the connection page shows when a client has disconnected and stops refreshing', async (t) => {
    const { client } = await subscribedClient(t, 'ida', 'floor:4')
    const { page, context, pageErrors } = await openAdminPage(t, browser, relay, { expected: CLIENT_ERROR })
    const requests: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/admin/api/connection?')) requests.push(request.url())
    })
    await page.clock.install()
    await page.goto('/admin#/connections?search=ida')
    await page.getByRole('link', { name: 'ida', exact: true }).click()
    await page.getByRole('heading', { name: 'ida' }).waitFor()
    client.disconnect()
    const notice = page.getByText(/^Disconnected at \d\d:\d\d:\d\d\./)
    await eventually(async () => {
      await page.clock.fastForward(6000)
      return notice.isVisible()
    })
    t.match(await page.locator('dl').innerText(), /Disconnected\n\d/)
    await page.getByRole('link', { name: 'floor:4' }).waitFor()

    // All tabs receive each sample at the same time; the page would refresh with the next one.
    const overview = await context.newPage()
    await overview.goto('/admin')
    const sampleTime = overview.getByText(/as of \d/)
    const before = requests.length
    for (let count = 0; count < 3; count++) {
      await page.clock.fastForward(6000)
      const shown = await sampleTime.innerText()
      await eventually(async () => (await sampleTime.innerText()) !== shown)
    }
    t.equal(requests.length, before)
    t.same(pageErrors, [])
  })

  t.test('the pages of an invalid channel and of invalid lists are usable', async (t) => {
    const { page, pageErrors } = await openAdminPage(t, browser, relay, { expected: CLIENT_ERROR })
    await page.goto('/admin#/channels?sort=__proto__&page=1e300')
    await page.getByText(/in total/).waitFor()
    await page.goto('/admin#/channel?name=')
    await page.getByRole('heading', { name: 'Channels' }).waitFor()
    await page.goto('/admin#/channel?name=nowhere:1')
    await page.getByText('Unknown namespace.').waitFor()
    t.equal(await page.getByRole('heading', { name: 'Subscribers' }).count(), 0)
    t.same(pageErrors, [])
  })

  t.test('the channel page shows complete JSON of a quarter of a megabyte and finds a value in it', async (t) => {
    const rows = Array.from({ length: 4000 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', { b: null }] }))
    await relay.publish('floor:json', { big: 0, rows })
    await relay.publish('loose:json', {})
    const { page, pageErrors, findings } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/channel?name=floor:json')
    await page.getByRole('button', { name: /offset 1.*rows/s }).click()
    const lines = page.getByRole('list', { name: 'Data of the publication' })
    const rowsLine = lines.getByRole('button', { name: '"rows"' })
    await lines.getByText('{ "id": 0, … }, · 3').waitFor()
    t.equal(await lines.getByRole('listitem').count(), 200, 'one page of lines is rendered')
    await rowsLine.focus()
    await page.keyboard.press('Enter')
    await lines.getByText('"rows": [ … ] · 4000').waitFor()
    t.equal(await lines.getByRole('listitem').count(), 4)

    await page.getByRole('searchbox', { name: 'Search in Data of the publication' }).fill('ROW 3999')
    await page.getByText('1 of 1', { exact: true }).waitFor()
    const match = lines.locator('[aria-current]')
    t.equal(await match.innerText(), '"name": "row 3999",')
    await page.getByText(/^\d+–\d+ of 4\d\d\d$/).waitFor()
    await page.getByRole('button', { name: 'Collapse all' }).click()
    await lines.getByText('"rows": [ … ] · 4000').waitFor()
    await page.getByRole('button', { name: 'Next match' }).click()
    await match.waitFor()
    t.equal(await page.evaluate(IS_MATCH_IN_VIEW), true)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      t.same(await findings(), [], colorScheme)
    }
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 })
      t.equal(await page.evaluate(OVERFLOW), 0, `${width} px`)
    }
    await page.getByRole('button', { name: 'Close the publication' }).click()
    await page
      .getByRole('list', { name: /Latest publications/ })
      .locator('button')
      .and(page.locator(':focus'))
      .press('Enter')
    await page.getByRole('button', { name: 'Raw text' }).click()
    t.ok((await page.locator('pre').innerText()).endsWith('"row 3999","tags":["a",{"b":null}]}]}'))
    t.same(pageErrors, [])
  })

  t.test('the channel page shows JSON with thousands of levels and numbers of any length', async (t) => {
    const depth = 5000
    const { page, pageErrors } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/channel?name=loose:deep')
    await page.getByText('Live', { exact: true }).waitFor()
    const text = `{"channel":"loose:deep","data":{"n":12345678901234567890,"deep":${'['.repeat(depth)}"end"${']'.repeat(depth)}}}`
    const publication = page.getByRole('button', { name: /"n":12345678901234567890/ }).first()
    await eventually(async () => {
      await relay.api('publish', text)
      return (await publication.count()) > 0
    })
    await publication.click()
    await page.getByRole('searchbox', { name: 'Search in Data of the publication' }).fill('end')
    await page.locator('ol [aria-current]').getByText('"end"').waitFor()
    await page.getByRole('searchbox', { name: 'Search in Data of the publication' }).fill('12345678901234567890')
    await page.locator('ol [aria-current]').getByText('"n": 12345678901234567890').waitFor()
    t.same(pageErrors, [])
  })

  t.test('the channel page shows the last fifty of identical publications', async (t) => {
    const { page, pageErrors } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/channel?name=loose:1')
    await page.getByText('Live', { exact: true }).waitFor()
    const shown = page.locator('ol li')
    let round = 0
    // All publications of a batch have the same time.
    const publish = async (): Promise<void> => {
      const command = { publish: { channel: 'loose:1', data: { round: ++round } } }
      await relay.api('batch', { commands: Array.from({ length: 20 }, () => command) })
    }
    await eventually(async () => {
      await publish()
      return (await shown.count()) === 50
    })
    const latest = await shown.first().innerText()
    await eventually(async () => {
      await publish()
      return (await shown.first().innerText()) !== latest
    })
    t.equal(await shown.count(), 50)
    t.same(pageErrors, [])
  })

  t.test(
    'the channel page counts the publications that its list skips, and their last time agrees with the rate',
    async (t) => {
      const opened = await openAdminPage(t, browser, relay)
      const { page, pageErrors } = opened
      await page.goto('/admin#/channel?name=loose:fast')
      await page.getByText('Live', { exact: true }).waitFor()
      const command = { publish: { channel: 'loose:fast', data: {} } }
      const publishing = setInterval(() => {
        void relay.api('batch', { commands: Array.from({ length: 100 }, () => command) })
      }, 300)
      t.teardown(() => clearInterval(publishing))
      await page
        .getByText(/^\d+ publications are not listed since the page was opened: the list receives up to 20 per/)
        .waitFor()
      t.same(await opened.findings(), [])
      const fact = async (name: string): Promise<string> =>
        (await page.locator('dl div', { hasText: name }).innerText()).split('\n')[1] ?? ''
      await eventually(async () => Number(await fact('Publishes per second')) > 20)
      const isCurrent = (text: string): boolean => /^(just now|2 s ago)$/.test(text)
      await eventually(async () => isCurrent(await fact('Last publish')))
      await page.goto('/admin#/channels?search=loose:fast')
      const row = page.getByRole('row', { name: /loose:fast/ })
      await row
        .getByText(/^\d{2,}$/)
        .first()
        .waitFor()
      await eventually(async () => isCurrent(await row.locator('[data-title="Last publish"]').innerText()))
      t.same(pageErrors, [])
    }
  )

  t.test('the channel page lists the entries of a map, finds a key, and asks before it removes one', async (t) => {
    const write = (key: string, version: number): Promise<unknown> =>
      relay.api('map_publish', { channel: 'fleet:1', key, data: { speed: version }, version })
    for (let number = 100; number < 160; number += 1) await write(`truck-${number}`, number)
    await write('long-key-'.repeat(20), 1)
    const opened = await openAdminPage(t, browser, relay)
    const { page, pageErrors } = opened
    await page.goto('/admin#/channel?name=fleet:1')
    const entries = page.getByRole('region', { name: 'Entries', exact: true })
    await entries.getByText('61 keys, recoverable').waitFor()
    await checkLayouts(t, opened, 'a map')
    await entries.locator('tr', { hasText: /truck-101.*\{"speed":101\}.*13 B.*101.*in \d+ min/ }).waitFor()
    const last = entries.locator('tr', { hasText: 'truck-159' })
    t.equal(await last.count(), 0, 'the browser receives one page')
    await entries.getByRole('button', { name: 'Next' }).click()
    await last.waitFor()
    t.ok(await entries.getByRole('button', { name: 'Next' }).isDisabled())
    await entries.getByRole('button', { name: 'Previous' }).click()
    await last.waitFor({ state: 'detached' })

    const search = entries.getByRole('searchbox', { name: 'Find a key' })
    await search.fill('truck-15')
    await search.press('Enter')
    await entries.getByText('The key is not in the map.').waitFor()
    await search.fill('truck-159')
    await search.press('Enter')
    await last.waitFor()
    const remove = entries.getByRole('button', { name: 'Remove truck-159' })
    await remove.click()
    t.same(await opened.findings(), [])
    await page.keyboard.press('Escape')
    await remove.and(page.locator(':focus')).waitFor()
    await entries.getByText('61 keys').waitFor()
    await remove.click()
    await page.getByRole('button', { name: 'Remove the key' }).click()
    await page.getByText('The key truck-159 is removed.').waitFor()
    await entries.getByText('60 keys').waitFor()
    await entries.getByText('The key is not in the map.').waitFor()
    const { body } = await relay.api('map_read_state', { channel: 'fleet:1', limit: 100 })
    t.match(body, 'truck-158')
    t.notMatch(body, 'truck-159')
    t.same(pageErrors, [])
  })

  t.test('the backends page shows the error of a proxy, and the channel list the keys of maps', async (t) => {
    await relay.api('map_publish', { channel: 'fleet:2', key: 'truck', data: {} })
    const client = await connectedClient(t, relay.url, 'kim')
    await client.request({ id: 2, rpc: { method: 'x' } })
    const { page, pageErrors } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/backends')
    const row = page.getByRole('row', { name: /^rpc\.proxy rpc/ })
    await row.locator('[data-state=red]').waitFor()
    t.match(await row.innerText(), /100 %[\s\S]*ECONNREFUSED, /)
    await page.getByRole('link', { name: 'Channels', exact: true }).click()
    await page.getByRole('link', { name: 'Maps' }).click()
    await page.getByRole('row', { name: /fleet:2.* 1 key$/ }).waitFor()
    const others = page.getByRole('link', { name: /^(?:floor|loose|checked):/ })
    await others.first().waitFor({ state: 'detached' })
    t.same(pageErrors, [])
  })

  t.test('the page continues with the new session after a sign-in in another tab', async (t) => {
    const { page, context } = await openAdminPage(t, browser, relay, { expected: CLIENT_ERROR })
    await page.goto('/admin')
    await page.getByText('Live', { exact: true }).waitFor()
    await context.request.post('/admin/api/sign-in', { data: { password: ADMIN_PASSWORD } })
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to the relay' }).waitFor()
    t.equal((await context.request.get('/admin/api/session')).status(), 401)
  })

  t.test('the connection list disconnects one connection or all connections of a user', async (t) => {
    const dov = await Promise.all([1, 2, 3].map(() => subscribedClient(t, 'dov', 'floor:2')))
    const { client: other } = await subscribedClient(t, 'eve', 'floor:2')
    const allDisconnected = dov.map(({ client }) => disconnected(client))
    const opened = await openAdminPage(t, browser, relay)
    const { page, pageErrors } = opened
    // The search also matches client ids; 'dov' cannot be part of one.
    await page.goto('/admin#/connections?search=dov')
    await page.getByText('3 found').waitFor()
    const first = page.getByRole('button', { name: 'Disconnect dov' }).first()

    await first.click()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    t.equal(
      dov.filter(({ client }) => client.state === 'connected').length,
      3,
      'nothing is disconnected before the confirmation'
    )

    await first.click()
    await page.getByRole('button', { name: 'Close this connection' }).click()
    await Promise.race(allDisconnected)
    await page.getByText('2 found').waitFor()
    await first.click()
    const closeAll = page.getByRole('button', { name: 'Close all 2 connections' })
    t.same(await opened.findings(), [])
    t.match(await closeAll.getAttribute('class'), 'danger')
    await closeAll.click()
    await page.getByText('Closed all 2 connections of dov.').waitFor()
    await Promise.all(allDisconnected)
    await page.getByText('No matching connections.').waitFor()
    t.equal(other.state, 'connected')
    t.same(pageErrors, [])
  })

  t.test('the connection list signs a user out everywhere after a confirmation', async (t) => {
    const token = relayToken({ sub: 'gus' })
    const mine = await Promise.all([1, 2].map(() => connectedClient(t, relay.url, 'gus')))
    const other = await connectedClient(t, relay.url, 'hal')
    const { page, pageErrors } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/connections?search=gus')
    await page.getByText('2 found').waitFor()
    await page.getByRole('button', { name: 'Disconnect gus' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('close all 2 connections and reject all tokens that were issued up to now').waitFor()
    t.ok(mine.every(({ ws }) => ws.readyState === ws.OPEN))

    await dialog.getByRole('button', { name: 'Sign out everywhere' }).click()
    await page.getByText('gus is signed out. Earlier tokens are not accepted any more.').waitFor()
    for (const { closed } of mine) t.match(await closed, /^3005 /)
    await page.getByText('No matching connections.').waitFor()
    const again = await openClient(t, relay.url)
    t.match(await again.request({ id: 1, connect: { token } }), { error: { code: 109 } })
    await page.getByRole('region', { name: 'Revoked tokens' }).getByRole('cell', { name: 'gus' }).waitFor()
    t.equal(other.ws.readyState, other.ws.OPEN)
    t.same(pageErrors, [])
  })

  t.test('the page shows HTML in names as text', async (t) => {
    const name = 'floor:<img src=x onerror="document.body.remove()">'
    const user = '<script>document.body.remove()</script>'
    await subscribedClient(t, user, name)
    await relay.publish(name, { text: '<b>bold</b>' })
    const { page, pageErrors } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/connections')
    await page.getByText(user, { exact: true }).waitFor()
    await page.goto('/admin#/channels?search=onerror')
    await page.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { name, exact: true }).waitFor()
    await page.getByText('{"text":"<b>bold</b>"}').waitFor()
    t.same(pageErrors, [])
  })

  t.test('the configuration page shows the active configuration without secrets', async (t) => {
    const { page } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/config')
    await page.getByRole('region', { name: 'channels.namespaces.checked' }).getByText('PositionBatch').waitFor()
    await page.getByText('not reloaded').waitFor()
    const text = await page.locator('main').innerText()
    t.match(text, '(hidden)')
    for (const secret of [ADMIN_PASSWORD, API_KEY, HMAC_SECRET]) t.notMatch(text, secret)
  })

  t.test('the page shows nothing as current while it is disconnected, and reconnects', async (t) => {
    const opened = await openAdminPage(t, browser, relay, { expected: /net::ERR/ })
    const { page, pageErrors } = opened
    await page.goto('/admin#/checks')
    await check(opened, 'engine', 'green').waitFor()
    await page.route('**/admin/api/live*', (route) => route.abort())
    relay.running.server.closeAllConnections()
    await page
      .getByText(/Disconnected from the relay\. Everything below is the last data, as of \d\d:\d\d:\d\d\./)
      .waitFor()
    t.equal(await page.locator('[data-state=green], .chip.good').count(), 0)
    t.match(await page.title(), /^\(disconnected\)/)
    const side = await page.locator('.side').boundingBox()
    const note = await page.locator('.stream').boundingBox()
    t.ok((note?.x ?? 0) + (note?.width ?? 0) <= (side?.width ?? 0), 'the message fits the sidebar')
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText(/last data of \d\d:\d\d:\d\d/).waitFor()
    const colours = `['.value', '.muted'].map((part) => getComputedStyle(document.querySelector(\`main \${part}\`)).color)`
    const [value, muted] = await page.evaluate<string[]>(colours)
    t.equal(value, muted, 'figures are grey')
    await checkLayouts(t, opened, 'disconnected')
    // A frozen relay responds to nothing.
    await page.route('**/admin/api/*', () => undefined)
    for (const view of ['backends', 'config', 'channels']) {
      await page.goto(`/admin#/${view}`)
      await page.getByText('Loading …').waitFor()
    }
    await page.goto('/admin#/channel?name=floor:9')
    await page.getByText('No publications are received while disconnected.').waitFor()
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.getByText('Live', { exact: true }).waitFor()
    t.equal(await page.getByText(/Disconnected/).count(), 0)
    t.same(pageErrors, [])
  })

  t.test('all views fit four widths and are accessible in both themes', async (t) => {
    await subscribedClient(t, 'hal', 'checked:a')
    await relay.publish('checked:a', { type: 'position-batch', data: [] })
    const opened = await openAdminPage(t, browser, relay, { viewport: { width: 1440, height: 900 } })
    const { page, pageErrors } = opened
    for (const view of VIEWS) {
      await page.goto(`/admin#/${view}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByText('Live', { exact: true }).waitFor()
      await checkLayouts(t, opened, view)
    }
    for (const view of ['channels', 'connections']) {
      await page.goto(`/admin#/${view}`)
      await page.locator('.table-box a').first().waitFor()
      for (const width of [920, 1000, 1100, 1280]) {
        await page.setViewportSize({ width, height: 900 })
        t.equal(await page.evaluate(TABLE_OVERFLOW), 0, `the list of ${view} fits a window of ${width} px`)
      }
    }
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to the relay' }).waitFor()
    await checkLayouts(t, opened, 'sign-in')
    t.same(pageErrors, [])
  })

  t.test('the menu of a phone leads to the views', async (t) => {
    const opened = await openAdminPage(t, browser, relay, PHONE)
    const { page, pageErrors } = opened
    await page.goto('/admin')
    await page.getByRole('navigation').getByRole('link', { name: 'Checks' }).tap()
    await check(opened, 'engine', 'green').waitFor()
    t.same(pageErrors, [])
  })

  t.test('the connection list can be used with the keyboard', async (t) => {
    await subscribedClient(t, 'fay', 'floor:3')
    const { page } = await openAdminPage(t, browser, relay)
    await page.goto('/admin#/connections?search=fay')
    const disconnect = page.getByRole('button', { name: 'Disconnect fay' })
    await disconnect.waitFor()
    await page.keyboard.press('Tab')
    t.equal(await page.locator(':focus').innerText(), 'Skip to content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.getByRole('searchbox').and(page.locator(':focus')).waitFor()

    await disconnect.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await disconnect.and(page.locator(':focus')).waitFor()

    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    t.equal(await page.evaluate(REOPEN_DIALOG), true, 'a dialog that is opened again at once stays open')
    await page.getByRole('button', { name: 'Close this connection' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('No matching connections.').waitFor()
    // The button of the closed connection is gone.
    await page.getByRole('region', { name: 'Connections' }).and(page.locator(':focus')).waitFor()
  })
})
