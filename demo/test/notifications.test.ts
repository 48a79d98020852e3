import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { verifyWebhook } from '../../src/backend/index.js'
import { portOf } from '../../test/helper/address.js'
import { eventually } from '../../test/helper/eventually.js'
import { freePort, LOOPBACK } from '../../test/helper/free-port.js'
import { newDatabase } from '../../test/helper/postgres.js'
import { selfSigned } from '../../test/helper/tls-event-backend.js'
import { startTestBackend, type TestBackend } from './demo-backend.js'
import { MAIL_ACCOUNT, startMailServer } from './helper/mail-server.js'

const MINUTE_MS = 60_000
const SECRET = 'a-secret-of-the-webhook'
const BATTERY = 'AC233F000040'

const pair = await selfSigned(t.testdir(), 'localhost')
const database = { url: await newDatabase() }
// The time stands still between two steps, because attempts are repeated after seconds.
const test = await startTestBackend(t, { database, nowMs: Date.now() })
const admin = await test.signIn('admin')
const operator = await test.signIn('operator')

interface Received {
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: string
}
const received: Received[] = []
let status = 200
const webhook: Server = createServer((request, response) => {
  void text(request).then((body) => {
    received.push({ headers: request.headers, body })
    response.writeHead(status, { location: '/elsewhere' }).end('the secret page of the internal network')
  })
})
await once(webhook.listen(0, LOOPBACK), 'listening')
t.teardown(() => {
  webhook.closeAllConnections()
  webhook.close()
})
const webhookUrl = `http://${LOOPBACK}:${portOf(webhook)}/alerts`

const send = (method: string, path: string, body?: object, token = admin) => {
  // Records are in the order of their times.
  test.advance(1)
  return test.request(method, path, token, body)
}
const get = async (path: string) => (await send('GET', path)).json().data
const addChannel = async (body: object): Promise<string> => {
  const response = await send('POST', '/api/notifications/channels', body)
  if (response.status !== 201) throw new Error(response.body)
  return response.json().data.id
}
const testChannel = (id: string) => send('POST', `/api/notifications/channels/${id}/test`)
const deliveriesOf = (channelId: string) => get(`/api/notifications/deliveries?channelId=${channelId}`)
const setMailServer = (body: object) => send('PATCH', '/api/notifications/mail-server', body)

// The clock of the test must not raise alerts about anything else.
const OTHER_KINDS = ['zoneBreach', 'zoneOverCapacity', 'receiverOffline', 'transmitterSilent', 'visitOverdue']
await send('PATCH', '/api/mgmt/settings/alerts', Object.fromEntries(OTHER_KINDS.map((kind) => [kind, false])))
await test.backend.alerts.check()

const charge = async (batteryLevel: number): Promise<void> => {
  await send('PATCH', `/api/transmitters/${BATTERY}`, { batteryLevel })
  await test.backend.alerts.check()
}
/** Ends the alert and forgets it, so that the next one is new. */
const recharge = async (): Promise<void> => {
  await charge(90)
  test.advance(10 * MINUTE_MS)
  await test.backend.alerts.check()
}
const deliver = async ({ backend }: TestBackend = test): Promise<void> => {
  await backend.notifications.check()
  await backend.notifications.settled()
}
const mailOptions = { key: pair.key, cert: pair.cert }
const PLAIN = { disabledCommands: ['STARTTLS'] }

t.test('a webhook', async (t) => {
  const webhookBody = { name: 'Operations', type: 'webhook', url: webhookUrl, secret: SECRET, minSeverity: 'warning' }
  const id = await addChannel(webhookBody)

  t.test('a new alert is posted once, signed with the secret, and recorded', async (t) => {
    await charge(15)
    await deliver()
    await test.backend.alerts.check()
    await deliver()
    const about = received.filter(({ body }) => body.includes('battery-low'))
    t.equal(about.length, 1)
    const [{ headers, body } = { headers: {}, body: '' }] = about
    t.equal(verifyWebhook(body, headers, [SECRET]), true)
    t.equal(verifyWebhook(body, headers, ['another secret of a webhook']), false)
    t.match(JSON.parse(body), { event: 'raised', total: 1, alerts: [{ severity: 'warning', detail: '15 % charge' }] })
    t.match(await deliveriesOf(id), [{ status: 'sent', attempts: 1, channelName: 'Operations', message: null }])
  })

  t.test('an alert that returns within the cooldown is not sent again', async (t) => {
    const before = received.length
    await charge(90)
    await charge(15)
    await deliver()
    t.equal(received.length, before)
  })

  t.test('a failed delivery is repeated with growing delays and keeps the order', async (t) => {
    await recharge()
    status = 503
    received.length = 0
    await charge(15)
    await deliver()
    await deliver()
    t.equal(received.length, 1, 'no second attempt before the delay')
    t.match(await deliveriesOf(id), [
      { status: 'waiting', attempts: 1, message: `127.0.0.1:${portOf(webhook)} responded with status 503.` },
      { status: 'sent' }
    ])
    test.advance(5000)
    await deliver()
    t.equal(received.length, 2)
    test.advance(5000)
    await deliver()
    t.equal(received.length, 2, 'the second delay is longer')
    status = 200
    test.advance(10_000)
    await deliver()
    t.match(await deliveriesOf(id), [{ status: 'sent', attempts: 3, message: null }, {}])
    const ids = new Set(received.map(({ body }) => JSON.parse(body).id))
    t.equal(ids.size, 1, 'attempts have the same id, so that the receiver can recognise them')
  })

  t.test('a repaired channel is tried at once', async (t) => {
    await recharge()
    status = 503
    await charge(15)
    await deliver()
    status = 200
    await deliver()
    t.match((await deliveriesOf(id))[0], { status: 'waiting', attempts: 1 })
    await send('PUT', `/api/notifications/channels/${id}`, { name: 'Operations' })
    await deliver()
    t.match((await deliveriesOf(id))[0], { status: 'sent', attempts: 2 })
  })

  t.test('a rejected request is not repeated, and a redirect is not followed', async (t) => {
    for (const [rejection, message] of [
      [400, /responded with status 400/],
      [302, /redirects \(status 302\)/]
    ] as const) {
      await recharge()
      status = rejection
      received.length = 0
      await charge(15)
      await deliver()
      test.advance(60 * MINUTE_MS)
      await deliver()
      t.equal(received.length, 1)
      t.match((await deliveriesOf(id))[0], { status: 'failed', attempts: 1, message })
    }
    status = 200
  })

  t.test('the response of the other server is never shown', async (t) => {
    status = 500
    const response = await testChannel(id)
    status = 200
    t.match(response, { status: 422 })
    t.match(response.json().error, { code: 'DELIVERY_FAILED', message: /responded with status 500/ })
    t.notMatch(JSON.stringify([response.body, await deliveriesOf(id)]), /internal network/)
  })

  t.test('a test reports success, or that nobody listens', async (t) => {
    t.match((await testChannel(id)).json().data, { status: 'sent' })
    t.match(JSON.parse(received.at(-1)?.body ?? ''), { event: 'test' })
    await send('PUT', `/api/notifications/channels/${id}`, { url: `http://${LOOPBACK}:${await freePort()}/` })
    t.match((await testChannel(id)).json().error, { message: /127\.0\.0\.1:\d+ refused the connection/ })
    await send('PUT', `/api/notifications/channels/${id}`, { url: 'http://nowhere.invalid/' })
    t.match((await testChannel(id)).json().error, { message: /does not resolve/ })
    const [delivery] = await deliveriesOf(id)
    t.match(delivery, { event: 'test', status: 'failed', attempts: 1 })
    await send('PUT', `/api/notifications/channels/${id}`, { url: webhookUrl })
  })

  t.test('the secret is write-only', async (t) => {
    const [channel] = await get('/api/notifications/channels')
    t.match(channel, { hasSecret: true, version: 5 })
    const pages = ['/api/notifications/channels', `/api/notifications/channels/${id}`, '/api/audit/logs?limit=500']
    for (const path of pages) t.notMatch(JSON.stringify(await get(path)), SECRET)
    const stale = await send('PUT', `/api/notifications/channels/${id}?version=1`, { name: 'Other' })
    t.equal(stale.status, 409)
    t.notMatch(stale.body, SECRET)
  })

  t.test('bad channels are rejected with the field', async (t) => {
    for (const [body, path] of [
      [{ ...webhookBody, url: 'ftp://example.com' }, '/url'],
      [{ ...webhookBody, url: 'not an address' }, '/url'],
      [{ ...webhookBody, url: 'http://user:password@example.com/' }, '/url'],
      [{ ...webhookBody, secret: 'short' }, '/secret'],
      [{ ...webhookBody, secret: null }, '/secret'],
      [{ name: 'Mail', type: 'email' }, '/recipients'],
      [{ name: 'Mail', type: 'email', recipients: ['no address'] }, '/recipients'],
      [{ name: 'Mail', type: 'email', recipients: ['a@example.com,b@example.com'] }, '/recipients'],
      [{ name: 'Pigeon', type: 'pigeon' }, '/type']
    ] as const) {
      const response = await send('POST', '/api/notifications/channels', body)
      t.equal(response.status, 400, response.body)
      t.match(response.json().error.details, [{ path }])
    }
    t.equal((await get('/api/notifications/channels')).length, 1)
  })

  t.test('only users who may change the settings see and change channels', async (t) => {
    const paths = ['channels', 'deliveries', 'mail-server'].map((path) => `/api/notifications/${path}`)
    for (const path of paths) t.equal((await send('GET', path, undefined, operator)).status, 403)
    t.equal((await send('POST', '/api/notifications/channels', webhookBody, operator)).status, 403)
    t.equal((await send('POST', `/api/notifications/channels/${id}/test`, {}, operator)).status, 403)
    t.equal((await send('PATCH', '/api/notifications/mail-server', { port: 25 }, operator)).status, 403)
  })

  t.test('notifications of a deleted channel are not sent, but stay in the record', async (t) => {
    await recharge()
    status = 503
    await charge(15)
    await deliver()
    await send('DELETE', `/api/notifications/channels/${id}`)
    status = 200
    received.length = 0
    test.advance(60 * MINUTE_MS)
    await deliver()
    t.same(received, [])
    const [delivery] = await get('/api/notifications/deliveries?limit=1')
    t.match(delivery, { status: 'failed', channelName: 'Operations', message: 'The channel has been deleted.' })
  })
})

t.test('e-mail', async (t) => {
  await recharge()
  const recipients = ['reception@example.com', 'duty@example.com']
  const id = await addChannel({ name: 'Duty', type: 'email', recipients })
  const { user, password } = MAIL_ACCOUNT

  t.test('a channel without a mail server reports that it is missing', async (t) => {
    t.match((await testChannel(id)).json().error, { message: /mail server is not set up/ })
  })

  t.test('an alert is sent through STARTTLS with authentication', async (t) => {
    const server = await startMailServer(t, mailOptions)
    const settings = { host: 'localhost', port: server.port, sender: 'alerts@example.com', user, password }
    t.match((await setMailServer({ ...settings, certificate: pair.cert })).status, 200)
    await charge(15)
    await deliver()
    t.match(server.mails, [{ user, isEncrypted: true, from: 'alerts@example.com', to: recipients }])
    const { source = '' } = server.mails[0] ?? {}
    t.match(source, /Subject: \[Northgate Campus\] Warning: Low battery/)
    t.match(source, /15 % charge/)
    t.match(await deliveriesOf(id), [
      { status: 'sent', attempts: 1 },
      { event: 'test', status: 'failed' }
    ])
  })

  t.test('a test reports a certificate that is not trusted, a wrong password and missing encryption', async (t) => {
    const server = await startMailServer(t, mailOptions)
    const plain = await startMailServer(t, PLAIN)
    const errorWith = async (settings: object): Promise<string> => {
      await setMailServer({ password, ...settings })
      return (await testChannel(id)).json().error.message
    }
    t.match(await errorWith({ port: server.port, certificate: null }), /certificate that is not trusted/)
    t.match(await errorWith({ certificate: pair.cert, password: 'wrong' }), /rejected the user name or the password/)
    t.match(await errorWith({ port: plain.port }), /does not offer STARTTLS/)
    t.match(await errorWith({ port: 1 }), /localhost:1 refused the connection/)
    t.match(await errorWith({ host: 'nowhere.invalid' }), /does not resolve/)
    t.same([...server.mails, ...plain.mails], [])
  })

  t.test('a mail is sent with TLS from the start, and without encryption if that is set', async (t) => {
    const secure = await startMailServer(t, { ...mailOptions, secure: true })
    await setMailServer({ host: 'localhost', port: secure.port, security: 'tls', certificate: pair.cert, password })
    t.equal((await testChannel(id)).status, 200)
    t.match(secure.mails, [{ user, isEncrypted: true }])
    const plain = await startMailServer(t, PLAIN)
    await setMailServer({ port: plain.port, security: 'none', user: null })
    t.equal((await testChannel(id)).status, 200)
    t.match(plain.mails, [{ user: '', isEncrypted: false }])
  })

  t.test('a rejected recipient is named, and the others get the mail', async (t) => {
    const server = await startMailServer(t, PLAIN)
    await setMailServer({ port: server.port })
    const other = await addChannel({ name: 'Some', type: 'email', recipients: ['nobody@example.com', ...recipients] })
    t.match((await testChannel(other)).json().data, { message: 'The mail server rejected nobody@example.com.' })
    t.match(server.mails, [{ to: recipients }])
    await send('PUT', `/api/notifications/channels/${other}`, { recipients: ['nobody@example.com'] })
    t.match((await testChannel(other)).json().error, {
      message: /rejected the sender or all recipients \(status 550\)/
    })
    await send('DELETE', `/api/notifications/channels/${other}`)
  })

  t.test('the password is write-only and must be entered again for another server', async (t) => {
    await setMailServer({ user, password })
    const stored = await get('/api/notifications/mail-server')
    t.match(stored, { user, hasPassword: true })
    t.notMatch(JSON.stringify(await get('/api/audit/logs?limit=500')), password)
    t.notOk('password' in stored)
    const moved = await setMailServer({ host: 'mail.attacker.example' })
    t.match(moved.json().error, { details: [{ path: '/password' }] })
    t.match((await get('/api/notifications/mail-server')).host, 'localhost')
    t.notMatch(JSON.stringify(await get('/api/mgmt/settings')), password)
    await setMailServer({ user: null })
    t.match(await get('/api/notifications/mail-server'), { user: null, hasPassword: false })
  })

  t.test('a mail server that never responds delays neither alerts nor other channels', async (t) => {
    const silent = createTcpServer(() => undefined)
    await once(silent.listen(0, LOOPBACK), 'listening')
    t.teardown(() => silent.close())
    await setMailServer({ port: portOf(silent) })
    const other = await addChannel({ name: 'Hook', type: 'webhook', url: webhookUrl, secret: SECRET })
    received.length = 0
    await recharge()
    await charge(15)
    await test.backend.notifications.check()
    await eventually(() => received.length === 1)
    const before = Date.now()
    await test.backend.alerts.check()
    // Sending a mail is given up after 15 seconds.
    t.ok(Date.now() - before < 10_000)
    t.match(await deliveriesOf(id), [{ status: 'waiting', attempts: 0 }])
    await send('DELETE', `/api/notifications/channels/${other}`)
  })

  t.test('a waiting notification is sent after a restart of the backend', async (t) => {
    await test.backend.close()
    const server = await startMailServer(t, PLAIN)
    const restarted = await startTestBackend(t, { database, newIds: 'later', nowMs: Date.now() + 12 * 60 * MINUTE_MS })
    const token = await restarted.signIn('admin')
    await restarted.request('PATCH', '/api/notifications/mail-server', token, { port: server.port })
    await deliver(restarted)
    await eventually(() => server.mails.length === 1)
    await restarted.backend.notifications.settled()
    const sent = await restarted.request('GET', `/api/notifications/deliveries?channelId=${id}&limit=1`, token)
    t.match(sent.json().data, [{ status: 'sent', event: 'raised' }])
    t.match(server.mails, [{ to: recipients }])
  })
})
