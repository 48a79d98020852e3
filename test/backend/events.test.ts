import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import t from 'tap'
import {
  EventDisconnect,
  EventError,
  type EventHandlerOptions,
  type EventName,
  eventHandler,
  nodeListener,
  verifyWebhook
} from '../../src/backend/index.js'
import { signBody } from '../../src/shared/webhook-signature.js'
import { urlOf } from '../helper/address.js'

const CLIENT = { client: 'c1', transport: 'websocket', protocol: 'json', encoding: 'json' }
const SUBSCRIBE = { ...CLIENT, user: 'u1', channel: 'floor:1' }
const URL = 'http://backend/events'

const post = (body: unknown, headers: Readonly<Record<string, string>> = {}): Request =>
  new Request(URL, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers })

const signed = (body: unknown, secrets: readonly string[], atMs = Date.now()): Request => {
  const text = JSON.stringify(body)
  return post(text, { 'x-gatehouse-signature': signBody(text, secrets, atMs) })
}

const answer = async (pending: Promise<Response>): Promise<{ readonly status: number; readonly body: unknown }> => {
  const response = await pending
  return { status: response.status, body: await response.json() }
}

t.test('a handler answers an event with its result', async (t) => {
  const handle = eventHandler('subscribe', ({ user, channel }) => ({ info: { user, channel } }))
  t.same(await answer(handle(post(SUBSCRIBE))), {
    status: 200,
    body: { result: { info: { user: 'u1', channel: 'floor:1' } } }
  })
})

t.test('a handler without a result allows the event', async (t) => {
  const handle = eventHandler('subscribe', () => undefined)
  t.same(await answer(handle(post(SUBSCRIBE))), { status: 200, body: { result: {} } })
})

t.test('a connect handler that returns null names no user', async (t) => {
  const handle = eventHandler('connect', () => null)
  t.same(await answer(handle(post(CLIENT))), { status: 200, body: {} })
})

t.test('an rpc event without a method has an empty one', async (t) => {
  const handle = eventHandler('rpc', ({ method }) => ({ data: [method] }))
  t.same(await answer(handle(post({ ...CLIENT, user: 'u1' }))), { status: 200, body: { result: { data: [''] } } })
})

t.test('EventError becomes the error of the client', async (t) => {
  const handle = eventHandler('rpc', () => {
    throw new EventError(409, 'already acknowledged', { temporary: true })
  })
  t.same(await answer(handle(post({ ...CLIENT, user: '', method: 'ack' }))), {
    status: 200,
    body: { error: { code: 409, message: 'already acknowledged', temporary: true } }
  })
})

t.test('EventDisconnect becomes the close code of the client', async (t) => {
  const handle = eventHandler('publish', async () => {
    throw new EventDisconnect(4500, 'banned')
  })
  t.same(await answer(handle(post(SUBSCRIBE))), { status: 200, body: { disconnect: { code: 4500, reason: 'banned' } } })
})

t.test('other errors of a handler are passed to the caller', async (t) => {
  const handle = eventHandler('subscribe', () => {
    throw new Error('database is down')
  })
  await t.rejects(handle(post(SUBSCRIBE)), { message: 'database is down' })
})

const INVALID: readonly (readonly [EventName, string, unknown])[] = [
  ['subscribe', 'text that is not JSON', '{'],
  ['subscribe', 'an empty body', ''],
  ['subscribe', 'a list', []],
  ['subscribe', 'an event without a channel', { ...CLIENT, user: 'u1' }],
  ['subscribe', 'a user that is a number', { ...SUBSCRIBE, user: 7 }],
  ['rpc', 'a method that is a number', { ...CLIENT, user: 'u1', method: 7 }],
  ['refresh', 'an event without a user', CLIENT],
  ['state', 'an event without a list', { events: {} }],
  ['state', 'a state that does not exist', { events: [{ channel: 'a', type: 'full', id: '1', time_ms: 1 }] }]
]

for (const [name, title, body] of INVALID) {
  t.test(`a ${name} handler rejects ${title}`, async (t) => {
    const handle = eventHandler(name, () => {
      throw new Error('is not called')
    })
    t.match(await answer(handle(post(body))), { status: 400 })
  })
}

t.test('a handler rejects other methods and bodies above its limit', async (t) => {
  const handle = eventHandler('subscribe', () => undefined, { maxBytes: 200 })
  t.match(await answer(handle(new Request(URL))), { status: 405 })
  t.match(await answer(handle(post({ ...SUBSCRIBE, data: 'x'.repeat(200) }))), { status: 413 })
  t.match(await answer(handle(post(SUBSCRIBE))), { status: 200 })
})

t.test('a handler with secrets accepts requests that the relay has signed with one of them', async (t) => {
  const handle = eventHandler('subscribe', () => undefined, { secrets: ['new', 'old'] })
  const now = Date.now()
  const statuses = [
    signed(SUBSCRIBE, ['new']),
    signed(SUBSCRIBE, ['newest', 'old']),
    signed(SUBSCRIBE, ['new'], now - 200_000),
    signed(SUBSCRIBE, ['other']),
    signed(SUBSCRIBE, ['new'], now - 400_000),
    signed(SUBSCRIBE, ['new'], now + 400_000),
    post(SUBSCRIBE),
    post(SUBSCRIBE, { 'x-gatehouse-signature': signBody(JSON.stringify({ ...SUBSCRIBE, user: 'u2' }), ['new'], now) })
  ].map(async (request) => (await handle(request)).status)
  t.same(await Promise.all(statuses), [200, 200, 200, 401, 401, 401, 401, 401])
})

t.test('a handler cannot be made with secrets that are empty', async (t) => {
  const missing: unknown = undefined
  for (const secrets of [[], [''], ['a', ''], [missing as string]] satisfies EventHandlerOptions['secrets'][])
    t.throws(() => eventHandler('state', () => undefined, { secrets }), { message: 'secrets must not be empty' })
})

t.test('verifyWebhook reads the headers of Request, Node.js and Express', async (t) => {
  const body = '{"events":[]}'
  const signature = signBody(body, ['s'], Date.now())
  t.equal(verifyWebhook(body, new Headers({ 'X-Gatehouse-Signature': signature }), ['s']), true)
  t.equal(verifyWebhook(Buffer.from(body), { 'x-gatehouse-signature': signature }, ['s']), true)
  t.equal(verifyWebhook(body, { 'X-Gatehouse-Signature': signature }, ['s']), true)
})

t.test('verifyWebhook rejects signatures that are missing, malformed or repeated', async (t) => {
  const body = '{}'
  const now = Date.now()
  const signature = signBody(body, ['s'], now)
  const values = [
    undefined,
    '',
    'v1=00',
    signature.replace('t=', 't=x'),
    signature.replace('v1', 'v2'),
    signature.toUpperCase(),
    `${signature}, ${signature}`,
    signature.slice(0, -2)
  ]
  for (const value of values)
    t.equal(verifyWebhook(body, { 'x-gatehouse-signature': value }, ['s'], now), false, `${value}`)
  t.equal(verifyWebhook(body, { 'x-gatehouse-signature': [signature, signature] }, ['s'], now), false)
  t.equal(verifyWebhook(body, { 'x-gatehouse-signature': signature, 'X-GATEHOUSE-signature': 'x' }, ['s']), false)
  t.equal(verifyWebhook(body, { 'x-gatehouse-signature': signBody(body, [''], now) }, ['', 's'], now), false)
  t.equal(verifyWebhook(body, { 'x-gatehouse-signature': signature }, [], now), false)
})

const send = async (url: string, body: string, method = 'POST') => {
  const response = await fetch(url, { method, ...(method === 'POST' && { body }) })
  return [response.status, await response.text()]
}

t.test('nodeListener serves a handler from http.createServer', async (t) => {
  const handle = eventHandler('rpc', ({ method, data }) => {
    if (method === 'fail') throw new Error('unexpected')
    return { data }
  })
  const server = createServer(nodeListener(handle)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = urlOf(server)
  const call = (method: string): string => JSON.stringify({ ...CLIENT, user: 'u1', method, data: { n: 1 } })

  t.same(await send(url, call('echo')), [200, '{"result":{"data":{"n":1}}}'])
  t.match(await send(url, '', 'GET'), [405])
  const warned = once(process, 'warning')
  t.same(await send(url, call('fail')), [500, ''])
  t.match(await warned, [{ message: 'unexpected' }])
})

t.test('nodeListener serves a handler in Express and passes errors to its error handler', async (t) => {
  const app = express()
  app.post('/events', nodeListener(eventHandler('subscribe', () => ({ data: 1 }))))
  app.use(express.json())
  app.post('/late', nodeListener(eventHandler('subscribe', () => undefined)))
  const errors: string[] = []
  app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
    errors.push(error.message)
    response.status(500).end()
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const body = JSON.stringify(SUBSCRIBE)

  t.same(await send(`${urlOf(server)}/events`, body), [200, '{"result":{"data":1}}'])
  const response = await fetch(`${urlOf(server)}/late`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' }
  })
  t.equal(response.status, 500)
  t.match(errors, [/before express\.json/])
})
