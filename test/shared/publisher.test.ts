import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import t from 'tap'
import { SettingsError } from '../../src/shared/env.js'
import { createPublisher, type PublisherOptions, publisherFromEnv } from '../../src/shared/publisher.js'
import { urlOf } from '../helper/address.js'
import type { Teardown } from '../helper/child.js'

const KEY = 'the-key-of-the-relay'

interface Request {
  readonly url: string | undefined
  readonly key: unknown
  readonly errorMode?: unknown
  readonly body: {
    readonly channel?: string
    readonly channels?: readonly string[]
    readonly data: unknown
    readonly idempotency_key?: string
  }
}

type Responder = (response: ServerResponse, request: Request) => unknown

const ok: Responder = (response) => response.end('{"result":{}}')

/** A relay with scripted responses. */
const startRelay = async (t: Teardown, respond: Responder = ok) => {
  const requests: Request[] = []
  const connections = new Set<unknown>()
  let arrived = (): void => undefined
  const relay = {
    requests,
    connections,
    respond,
    url: '',
    /** Resolves when that many requests have arrived. */
    async received(count: number): Promise<void> {
      while (requests.length < count) await new Promise<void>((resolve) => (arrived = resolve))
    }
  }
  const server = createServer(async (message: IncomingMessage, response) => {
    connections.add(message.socket)
    const { 'x-api-key': key, 'x-centrifugo-error-mode': errorMode } = message.headers
    const request = { url: message.url, key, errorMode, body: JSON.parse(await text(message)) }
    requests.push(request)
    arrived()
    relay.respond(response, request)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  relay.url = `${urlOf(server)}/api`
  return relay
}

const logLines = () => {
  const lines: Record<string, unknown>[] = []
  return { lines, log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }) }
}

const start = (url: string, options: Partial<PublisherOptions> = {}) => {
  const { lines, log } = logLines()
  return { lines, publisher: createPublisher({ url, apiKey: KEY, log, ...options }) }
}

t.test('a publisher', async (t) => {
  t.test('a publisher sends publications with the API key', async (t) => {
    const relay = await startRelay(t)
    const { publisher, lines } = start(relay.url)

    publisher.publish('floor:7', { type: 'position-batch', data: [] })
    publisher.broadcast(['floor:7', 'floor:8'], [1])
    await publisher.close()

    const headers = { key: KEY, errorMode: 'transport' }
    const sent = relay.requests.map((request) => {
      const { idempotency_key, ...body } = request.body
      t.match(idempotency_key, /^[0-9a-f-]{36}$/)
      return { ...request, body }
    })
    t.same(sent, [
      { url: '/api/publish', ...headers, body: { channel: 'floor:7', data: { type: 'position-batch', data: [] } } },
      { url: '/api/broadcast', ...headers, body: { channels: ['floor:7', 'floor:8'], data: [1] } }
    ])
    t.same(publisher.counts(), { published: 2, failed: 0, dropped: 0, retried: 0 })
    t.same(lines, [])
  })

  for (const [suffix, path] of [
    ['', '/api/publish'],
    ['/', '/api/publish'],
    ['/publish', '/api/publish']
  ]) {
    t.test(`a publisher accepts a URL that ends in /api${suffix}`, async (t) => {
      const relay = await startRelay(t)
      const { publisher } = start(`${relay.url}${suffix}`)

      publisher.publish('a', 1)
      await publisher.close()

      t.equal(relay.requests[0]?.url, path)
    })
  }

  t.test('a publisher accepts a URL without a path and one with a prefix', async (t) => {
    const relay = await startRelay(t)
    for (const url of [new URL(relay.url).origin, relay.url.replace('/api', '/relay/api')]) {
      const { publisher } = start(url)
      publisher.publish('a', 1)
      await publisher.close()
    }

    t.same(
      relay.requests.map(({ url }) => url),
      ['/api/publish', '/relay/api/publish']
    )
  })

  t.test('a publisher serialises the data at the time of the call', async (t) => {
    const relay = await startRelay(t)
    const { publisher } = start(relay.url)
    const data = { x: 1 }

    publisher.publish('a', data)
    data.x = 2
    await publisher.close()

    t.match(relay.requests[0]?.body, { data: { x: 1 } })
  })

  t.test('a publisher reuses its connections', async (t) => {
    const relay = await startRelay(t)
    const { publisher } = start(relay.url)

    for (let count = 1; count <= 20; count++) publisher.publish('a', count)
    await publisher.close()

    t.equal(relay.requests.length, 20)
    t.ok(relay.connections.size <= 8, `${relay.connections.size} connections`)
  })

  t.test('a publisher keeps the order within a channel with slow and failed requests', async (t) => {
    const relay = await startRelay(t, (response, { body }) =>
      setTimeout(() => ok(response, { url: '', key: '', body }), Math.random() * 5)
    )
    const { publisher } = start(relay.url)

    for (let count = 0; count < 30; count++) {
      publisher.publish('a', count)
      publisher.publish('b', count)
      if (count === 15) publisher.broadcast(['a', 'b', 'c'], 'all')
    }
    await publisher.close()

    const sent = relay.requests.map(({ body }) => body)
    const expected = [
      ...Array.from({ length: 16 }, (_, n) => n),
      'all',
      ...Array.from({ length: 14 }, (_, n) => n + 16)
    ]
    for (const name of ['a', 'b']) {
      const seen = sent.filter(({ channel, channels }) => channel === name || channels?.includes(name))
      t.same(
        seen.map(({ data }) => data),
        expected
      )
    }
  })

  t.test('a broadcast to no channels sends nothing', async (t) => {
    const relay = await startRelay(t)
    const { publisher } = start(relay.url)

    publisher.broadcast([], 1)
    await publisher.close()

    t.same(publisher.counts(), { published: 0, failed: 0, dropped: 0, retried: 0 })
    t.equal(relay.requests.length, 0)
  })
})

const json =
  (value: unknown): Responder =>
  (response) =>
    response.end(JSON.stringify(value))
const status =
  (code: number): Responder =>
  (response) =>
    response.writeHead(code).end()

const FAILURES: readonly (readonly [title: string, respond: Responder, reason: string, isTemporary: boolean])[] = [
  ['a wrong key', status(401), 'status 401', false],
  ['a server error', status(500), 'status 500', true],
  ['an error of a proxy', (response) => response.writeHead(502).end('{"code":"bad"}'), 'status 502', true],
  [
    'a rejected publication',
    (response) => response.writeHead(404).end('{"code":102,"message":"unknown channel"}'),
    'relay error 102',
    false
  ],
  [
    'an engine that is unavailable',
    (response) => response.writeHead(500).end('{"code":100,"message":"internal server error"}'),
    'relay error 100',
    true
  ],
  ['a relay that is going', status(503), 'status 503', true],
  ['a redirect', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), 'status 302', false],
  [
    'an error in a response with status 200',
    json({ error: { code: 102, message: 'unknown channel' } }),
    'relay error 102',
    false
  ],
  ['a response that is not JSON', (response) => response.end('<html>'), 'not a response of the relay', false],
  ['a response of another server', json({ ok: true }), 'not a response of the relay', false],
  ['a response that is null', json(null), 'not a response of the relay', false],
  ['a connection that is cut', (response) => response.destroy(), 'UND_ERR_SOCKET', true],
  [
    'a truncated response',
    (response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{')
      setTimeout(() => response.destroy(), 5)
    },
    'UND_ERR_SOCKET',
    true
  ],
  [
    'a response that never ends',
    (response) => response.write('{'.repeat(2 * 1024 * 1024)),
    'UND_ERR_RES_EXCEEDED_MAX_SIZE',
    false
  ],
  ['no response', () => undefined, 'timeout', true],
  ['a head and no body', (response) => response.flushHeaders(), 'timeout', true]
]

/** Only the cases without a response wait for the timeout: on a busy machine the others may take long. */
const timeoutFor = (reason: string, timeoutMs: number): Partial<PublisherOptions> => ({
  timeoutMs: reason === 'timeout' ? timeoutMs : 60_000
})

t.test('a failure', async (t) => {
  for (const [title, respond, reason] of FAILURES) {
    t.test(`a failure is counted and logged: ${title}`, async (t) => {
      const relay = await startRelay(t, respond)
      const { publisher, lines } = start(relay.url, timeoutFor(reason, 200))

      const outcome = await publisher.publish('floor:7', 1, { retry: false })
      await publisher.close()

      t.same(outcome, { isPublished: false, reason, channels: ['floor:7'] })
      t.same(publisher.counts(), { published: 0, failed: 1, dropped: 0, retried: 0 })
      t.match(lines, [{ level: 40, reason, failures: 1, msg: 'publishing to the relay failed' }])
      t.notMatch(JSON.stringify(lines), KEY)
      t.equal(relay.requests[0]?.body.idempotency_key, undefined, 'a single attempt needs no key')
    })
  }

  for (const [title, respond, reason, isTemporary] of FAILURES) {
    t.test(`a publisher ${isTemporary ? 'repeats' : 'does not repeat'} a request after ${title}`, async (t) => {
      const relay = await startRelay(t, (response, request) => {
        relay.respond = ok
        respond(response, request)
      })
      // The repeated request is answered, and has the same time.
      const { publisher } = start(relay.url, timeoutFor(reason, 2000))

      const outcome = await publisher.publish('floor:7', 1)

      t.equal(outcome.isPublished, isTemporary)
      const keys = relay.requests.map(({ body }) => body.idempotency_key)
      t.equal(keys.length, isTemporary ? 2 : 1)
      t.equal(new Set(keys).size, 1, 'every attempt has the same key')
      t.match(publisher.counts(), isTemporary ? { published: 1, failed: 0, retried: 1 } : { failed: 1, retried: 0 })
      await publisher.close()
    })
  }

  const rejected = (...codes: readonly (number | null)[]): Responder =>
    json({ result: { responses: codes.map((code) => (code === null ? { result: {} } : { error: { code } })) } })

  t.test('a broadcast names the channels that the relay rejected', async (t) => {
    const relay = await startRelay(t, rejected(null, 107))
    const { publisher, lines } = start(relay.url)

    const outcome = await publisher.broadcast(['a', 'b'], 1)

    t.same(outcome, { isPublished: false, reason: 'relay error 107', channels: ['b'] })
    t.match(lines, [{ reason: 'relay error 107' }])
    t.equal(relay.requests.length, 1)
    await publisher.close()
  })

  t.test('a broadcast is repeated if one channel was rejected with error 100', async (t) => {
    const relay = await startRelay(t, (response, request) => {
      relay.respond = rejected(null, 102, null)
      rejected(null, 102, 100)(response, request)
    })
    const { publisher } = start(relay.url)

    const outcome = await publisher.broadcast(['a', 'b', 'c'], 1)

    t.same(outcome, { isPublished: false, reason: 'relay error 102', channels: ['b'] })
    t.equal(relay.requests.length, 2)
    await publisher.close()
  })

  t.test(
    'a publication fails when its deadline has passed, with the wait for earlier ones of its channel',
    async (t) => {
      const relay = await startRelay(t, () => undefined)
      const { publisher } = start(relay.url, { timeoutMs: 200, deadlineMs: 500 })

      const began = performance.now()
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, data) => publisher.publish('a', data)))

      for (const outcome of outcomes) t.match(outcome, { isPublished: false, reason: 'timeout' })
      t.ok(performance.now() - began < 5_000, 'twenty deadlines would be ten seconds')
      await publisher.close()
    }
  )

  t.test('publications of a channel stay in order while one is repeated', async (t) => {
    const relay = await startRelay(t, (response, request) => {
      if (relay.requests.length === 3) relay.respond = ok
      status(503)(response, request)
    })
    const { publisher } = start(relay.url)

    const outcomes = await Promise.all([1, 2].map((data) => publisher.publish('a', data)))

    t.same(
      relay.requests.map(({ body }) => body.data),
      [1, 1, 1, 1, 2]
    )
    t.same(outcomes, [{ isPublished: true }, { isPublished: true }])
    await publisher.close()
  })

  t.test('a publication has the idempotency key of its caller', async (t) => {
    const relay = await startRelay(t)
    const { publisher } = start(relay.url)

    await publisher.publish('a', 1, { idempotencyKey: 'order-7' })
    await publisher.publish('a', 1, { idempotencyKey: 'order-8', retry: false })

    t.match(relay.requests, [{ body: { idempotency_key: 'order-7' } }, { body: { idempotency_key: 'order-8' } }])
    await publisher.close()
  })

  t.test('a deadline after which the relay has forgotten idempotency keys is rejected', async (t) => {
    for (const deadlineMs of [300_000, Number.NaN, 100])
      t.throws(() => start('http://relay/api', { deadlineMs }), { name: 'RangeError', message: /deadlineMs/ })
  })

  t.test('a publisher needs the address of the relay and an API key', async (t) => {
    for (const url of ['', '/api', undefined])
      t.throws(() => start('', { ...Object({ url }) }), { message: /^url must be the address/ })
    for (const apiKey of ['', undefined])
      t.throws(() => start('http://relay/api', { ...Object({ apiKey }) }), { message: 'apiKey must not be empty' })
  })

  t.test('a failure is counted and logged: the port is closed', async (t) => {
    const { publisher, lines } = start('http://127.0.0.1:1/api')

    publisher.publish('floor:7', 1, { retry: false })
    await publisher.close()

    t.same(publisher.counts(), { published: 0, failed: 1, dropped: 0, retried: 0 })
    t.match(lines, [{ reason: 'ECONNREFUSED' }])
  })

  const circle: Record<string, unknown> = {}
  circle.circle = circle
  const thrower = {
    toJSON: () => {
      throw new Error('no')
    }
  }
  for (const data of [circle, 1n, thrower]) {
    t.test(`a failure is counted and logged: data that cannot be serialised (${typeof data})`, async (t) => {
      const relay = await startRelay(t)
      const { publisher, lines } = start(relay.url)

      publisher.publish('a', data)
      publisher.broadcast(['a'], data)
      await publisher.close()

      t.same(publisher.counts(), { published: 0, failed: 2, dropped: 0, retried: 0 })
      t.match(lines, [{ reason: 'not JSON' }])
    })
  }

  t.test('publications after a failure are sent', async (t) => {
    const relay = await startRelay(t, status(500))
    const { publisher } = start(relay.url)

    publisher.publish('a', 1, { retry: false })
    await relay.received(1)
    relay.respond = ok
    publisher.publish('a', 2)
    await publisher.close()

    t.same(publisher.counts(), { published: 1, failed: 1, dropped: 0, retried: 0 })
  })

  t.test('repeated failures are logged once', async (t) => {
    const relay = await startRelay(t, status(500))
    const { publisher, lines } = start(relay.url)

    for (let count = 0; count < 50; count++) publisher.publish(`floor:${count}`, 1, { retry: false })
    await publisher.close()

    t.equal(publisher.counts().failed, 50)
    t.equal(lines.length, 1)
  })
})

t.test('publications beyond the maximum in flight are dropped and counted', async (t) => {
  const relay = await startRelay(t, () => undefined)
  const { publisher, lines } = start(relay.url, { maxInFlight: 3, timeoutMs: 300, deadlineMs: 300 })

  for (let count = 0; count < 10; count++) publisher.publish('a', count)
  await publisher.close()

  t.equal(publisher.counts().dropped, 7)
  t.equal(publisher.counts().failed, 3)
  t.match(lines[0], { reason: 'too much in flight' })
})

t.test('close', async (t) => {
  t.test('close waits for pending publications', async (t) => {
    const relay = await startRelay(t, () => undefined)
    const { publisher } = start(relay.url)
    const responses: ServerResponse[] = []
    relay.respond = (response) => responses.push(response)

    publisher.publish('a', 1)
    await relay.received(1)
    let closed = false
    const closing = publisher.close().then(() => (closed = true))
    t.equal(closed, false)
    for (const response of responses) response.end('{"result":{}}')
    await closing

    t.equal(publisher.counts().published, 1)
  })

  t.test('close waits at most for the timeout of one request', async (t) => {
    const relay = await startRelay(t, () => undefined)
    const { publisher } = start(relay.url, { timeoutMs: 200 })

    for (let count = 0; count < 100; count++) publisher.publish('a', count)
    const began = performance.now()
    await publisher.close()

    t.same(publisher.counts(), { published: 0, failed: 100, dropped: 0, retried: 0 })
    t.ok(performance.now() - began < 5_000, 'a hundred timeouts would be twenty seconds')
  })

  t.test('publications after close are dropped', async (t) => {
    const relay = await startRelay(t)
    const { publisher } = start(relay.url)
    await publisher.close()

    publisher.publish('a', 1)

    t.same(publisher.counts(), { published: 0, failed: 0, dropped: 1, retried: 0 })
    t.equal(relay.requests.length, 0)
  })
})

t.test('from the environment', async (t) => {
  const faultsOf = (environment: Record<string, string>): readonly string[] => {
    try {
      publisherFromEnv(environment, logLines().log)
      return []
    } catch (error) {
      if (error instanceof SettingsError) return error.errors
      throw error
    }
  }

  t.test('a publisher from the environment needs both settings', async (t) => {
    t.same(faultsOf({}), ['REALTIME_PUBLISH_URL is required', 'REALTIME_API_KEY is required'])
    t.same(faultsOf({ REALTIME_API_KEY: KEY }), ['REALTIME_PUBLISH_URL is required'])
    t.same(faultsOf({ REALTIME_PUBLISH_URL: 'http://relay/api' }), ['REALTIME_API_KEY is required'])
  })

  t.test('an invalid REALTIME_PUBLISH_URL is rejected without showing it', async (t) => {
    t.same(faultsOf({ REALTIME_API_KEY: KEY, REALTIME_PUBLISH_URL: 'ws://hunter2@relay' }), [
      'REALTIME_PUBLISH_URL must be an http or https address without user, query or fragment'
    ])
  })

  t.test('a publisher from the environment publishes', async (t) => {
    const relay = await startRelay(t)
    const publisher = publisherFromEnv({ REALTIME_PUBLISH_URL: relay.url, REALTIME_API_KEY: KEY }, logLines().log)

    publisher.publish('a', 1)
    await publisher.close()

    t.match(relay.requests, [{ key: KEY }])
  })
})
