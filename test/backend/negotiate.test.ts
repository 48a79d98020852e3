import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createPublisher, negotiate } from '../../src/backend/index.js'
import { urlOf } from '../helper/address.js'
import { eventually } from '../helper/eventually.js'
import { collect, event, officialClient, startRelay } from '../helper/relay.js'
import { API_KEY, HMAC_SECRET } from '../helper/relay-rules.js'

const NAMESPACE = { channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true, presence: true }] } }

t.test('a client connects with the token of negotiate and receives what the publisher sends', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  const url = `ws://127.0.0.1:${relay.port}/connection/websocket`
  const response = negotiate({ user: 'u1', url, secret: HMAC_SECRET, channels: ['chat:own'], info: { name: 'Ada' } })
  t.match(response, { success: true, data: { url, expiresIn: 3600, token: /^[\w-]+\.[\w-]+\.[\w-]+$/ } })

  const client = officialClient(t, relay, 'websocket', { getToken: async () => response.data.token })
  const subscription = client.newSubscription('chat:1')
  const subscribed = event(subscription, 'subscribed')
  const own = new Promise((resolve) => client.on('publication', ({ channel, data }) => resolve([channel, data])))
  const received = collect(subscription)
  subscription.subscribe()
  client.connect()
  await subscribed
  // No logger is needed.
  const publisher = createPublisher({ url: `${relay.url}/api`, apiKey: API_KEY })
  publisher.publish('chat:1', { n: 1 })
  publisher.publish('chat:own', { n: 2 })
  await received.until(({ length }) => length === 1)
  t.same(await own, ['chat:own', { n: 2 }])
  await eventually(() => publisher.counts().published === 2)
  await publisher.close()
})

t.test('negotiate rejects a missing user, address or secret, and an invalid lifetime', async (t) => {
  const valid = { user: 'u1', url: 'wss://a', secret: 's' }
  for (const name of ['user', 'url', 'secret']) {
    for (const value of ['', 42, undefined])
      t.throws(
        () => negotiate({ ...valid, [name]: value }),
        { message: `${name} must be a text that is not empty` },
        `${name}: ${value}`
      )
  }
  for (const expiresIn of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    t.throws(() => negotiate({ ...valid, expiresIn }), `${expiresIn}`)
  t.equal(negotiate({ ...valid, expiresIn: 60 }).data.expiresIn, 60)
})

t.test('a publication whose response was lost is repeated and delivered once', async (t) => {
  const relay = await startRelay(t, NAMESPACE)
  let requests = 0
  // Passes requests on to the relay, and drops the first response.
  const proxy = createServer(async (request, response) => {
    const headers = { 'x-api-key': String(request.headers['x-api-key']) }
    const answer = await fetch(`${relay.url}${request.url}`, { method: 'POST', headers, body: await text(request) })
    if (++requests === 1) response.destroy()
    else response.writeHead(answer.status).end(await answer.text())
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => proxy.close().closeAllConnections())
  const client = officialClient(t, relay, 'websocket')
  const subscription = client.newSubscription('chat:1')
  const subscribed = event(subscription, 'subscribed')
  const received = collect(subscription)
  subscription.subscribe()
  client.connect()
  await subscribed
  const publisher = createPublisher({ url: `${urlOf(proxy)}/api`, apiKey: API_KEY })

  t.same(await publisher.publish('chat:1', { n: 1 }), { isPublished: true })
  t.same(await publisher.publish('chat:1', { n: 2 }), { isPublished: true })

  t.equal(requests, 3)
  await received.until((publications) => publications.length >= 2)
  t.same(received.data, [{ n: 1 }, { n: 2 }])
  await publisher.close()
})
