import t from 'tap'
import { WebSocket } from 'ws'
import { ADMIN_ENV, check, figure, openAdminPage } from '../helper/admin-page.js'
import { startBrowser } from '../helper/browser.js'
import { startRedis } from '../helper/redis.js'
import { event, officialClient, startRelay } from '../helper/relay.js'
import { relayToken } from '../helper/relay-rules.js'

const MINUTE_MS = 60_000
const browser = await startBrowser(t)

t.test("the checks of the operators' page", async (t) => {
  const relay = await startRelay(t, undefined, ADMIN_ENV)
  const opened = await openAdminPage(t, browser, relay)
  const { page, pageErrors } = opened
  await page.goto('/admin#/checks')
  const details = (id: string) => page.locator(`[data-check="${id}"] dl`)

  t.test('the origins check turns red when a page with a foreign origin is rejected', async (t) => {
    await check(opened, 'origins', 'green').waitFor()
    const origin = 'https://<b>elsewhere</b>.example'
    const socket = new WebSocket(`ws://127.0.0.1:${relay.port}/connection/websocket`, { origin })
    await new Promise((resolve) => socket.once('error', resolve))
    await check(opened, 'origins', 'red').getByText('RELAY_ALLOWED_ORIGINS').waitFor()
    t.match(await details('origins').innerText(), origin)
    await page.getByRole('link', { name: /Checks\s+\d+ red/ }).waitFor()
    t.match(await page.title(), /^\(\d red\)/)
  })

  t.test('the tokens check turns red when a token has a bad signature', async (t) => {
    await check(opened, 'tokens', 'green').waitFor()
    const [head, claims] = relayToken({ sub: 'ada' }).split('.')
    const client = officialClient(t, relay, 'websocket', { token: `${head}.${claims}.AAAA`, getToken: null })
    const disconnected = event(client, 'disconnected')
    client.connect()
    await disconnected
    await check(opened, 'tokens', 'red').getByText('REALTIME_HMAC_SECRET').waitFor()
    t.match(await details('tokens').innerText(), 'bad-signature')
  })

  t.test('the key check turns red when a publisher uses a wrong API key', async (t) => {
    await check(opened, 'key', 'green').waitFor()
    const request = { channel: 'floor:1', data: {} }
    t.equal((await relay.api('publish', request, { headers: { 'x-api-key': 'wrong' } })).status, 401)
    await check(opened, 'key', 'red').getByText('REALTIME_API_KEY').waitFor()
  })

  t.test('the floors check turns amber, then red when publications stop', async () => {
    await check(opened, 'floors', 'amber').waitFor()
    await relay.publish('floor:1', { type: 'position-batch', data: [] })
    await check(opened, 'floors', 'green').waitFor()
    relay.advance(2 * MINUTE_MS)
    await check(opened, 'floors', 'amber').getByText('2 min ago').waitFor()
    relay.advance(4 * MINUTE_MS)
    await check(opened, 'floors', 'red').getByText('check the publisher').waitFor()
    await relay.publish('floor:1', { type: 'position-batch', data: [] })
    await check(opened, 'floors', 'green').waitFor()
  })

  t.test('the session of an idle operator ends while the page is open', async (t) => {
    relay.advance(31 * MINUTE_MS)
    await page.getByText('Your session has ended.').waitFor()
    t.same(pageErrors, [])
  })
})

t.test('the page of two relays on one Redis', async (t) => {
  const redis = await startRedis(t)
  const env = { ...ADMIN_ENV, RELAY_ENGINE: 'redis', REDIS_URL: redis.url }
  const relays = [await startRelay(t, undefined, env), await startRelay(t, undefined, env)] as const
  const opened = await openAdminPage(t, browser, relays[0])
  const { page, pageErrors } = opened

  t.test('the overview shows all nodes together or one node', async (t) => {
    for (const [index, relay] of relays.entries()) {
      const getToken = async () => relayToken({ sub: `user-${index}` })
      const client = officialClient(t, relay, 'websocket', { getToken })
      const connected = event(client, 'connected')
      client.connect()
      await connected
    }
    await page.goto('/admin')
    const connections = figure(opened, 'Connections')
    await connections.getByText('2', { exact: true }).waitFor()
    const nodes = page.getByRole('region', { name: 'Figures by node' }).locator('tbody tr')
    t.equal(await nodes.count(), 2)

    const [name = ''] = await nodes.getByRole('rowheader').allInnerTexts()
    await page.getByLabel('Show').selectOption(name)
    await connections.getByText('1', { exact: true }).waitFor()
    await page.getByLabel('Show').selectOption('All nodes')
    await connections.getByText('2', { exact: true }).waitFor()
    await page.goto('/admin#/connections')
    await page.getByRole('link', { name: 'user-0', exact: true }).waitFor()
    await page.getByRole('link', { name: 'user-1', exact: true }).waitFor()
    await page.getByRole('cell', { name, exact: true }).waitFor()
  })

  t.test('the engine check turns red while Redis is down', async (t) => {
    await page.goto('/admin#/checks')
    await check(opened, 'engine', 'green').getByText('Redis is connected.').waitFor()
    await redis.kill()
    await check(opened, 'engine', 'red').getByText('cannot reach Redis').waitFor()
    await redis.restart()
    await check(opened, 'engine', 'green').waitFor()
    t.same(pageErrors, [])
  })
})
