import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { ApiDispatcher } from '../../../src/relay/api/dispatcher.js'
import { schemaError } from '../../../src/relay/api/request.js'
import { serverApi } from '../../../src/relay/api/server-api.js'
import type { PublishTarget } from '../../../src/relay/core/engine.js'
import type { NewPublication } from '../../../src/relay/core/publication.js'
import { send } from '../../helper/http.js'
import { type EdgeRelay, startRelay } from '../../helper/relay.js'
import { coreRelay } from '../../helper/relay-core.js'
import { API_KEY } from '../../helper/relay-rules.js'

const FILE = {
  channel: {
    without_namespace: {},
    namespaces: [
      { name: 'kept', history_size: 100, history_ttl: '300s' },
      { name: 'plain' },
      { name: 'typed', schema: 'PositionBatch' }
    ]
  }
}
const MIB = 1024 * 1024
const TOO_LARGE = { code: 106, message: 'limit exceeded: the responses to one request must not exceed 16 MiB' }

const list = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index))
const lines = (body: string): ApiReply[] => body.split('\n').map((line) => JSON.parse(line))

interface ApiReply {
  readonly result?: { readonly publications?: readonly unknown[] }
  readonly [field: string]: unknown
}

/** Publishes more data than fits into a response. */
const fill = async ({ api }: EdgeRelay, channel: string, count: number, length: number): Promise<void> => {
  const data = 'x'.repeat(length)
  for (let index = 0; index < count; index++) await api('publish', { channel, data })
}

t.test('history commands receive error 106 once their responses exceed 16 MiB', async (t) => {
  const edge = await startRelay(t, FILE)
  await fill(edge, 'kept:1', 100, 45_000)
  const history = { method: 'history', params: { channel: 'kept:1', limit: -1 } }
  const commands = [...list(5600, () => history), { id: 7, method: 'publish', params: { channel: 'kept:2', data: 1 } }]
  const { status, body } = await edge.api('', commands.map((command) => JSON.stringify(command)).join('\n'))
  const replies = lines(body)

  t.equal(status, 200)
  t.equal(replies.length, 5601)
  t.equal(replies[0]?.result?.publications?.length, 100)
  t.same(replies[5599], { error: TOO_LARGE })
  t.match(replies[5600], { id: 7, result: { offset: 1 } }, 'the publish command is applied')
  t.ok(body.length < 18 * MIB)
  t.match(await edge.publish('kept:3', 1), { offset: 1 }, 'the relay goes on')
})

t.test('a history that exceeds the response limit receives error 106', async (t) => {
  const edge = await startRelay(t, FILE)
  await fill(edge, 'kept:1', 40, 500_000)
  const request = { channel: 'kept:1', limit: -1 }

  t.same(JSON.parse((await edge.api('history', request)).body), { error: TOO_LARGE })
  const asStatus = await edge.api('history', request, { headers: { 'x-centrifugo-error-mode': 'transport' } })
  t.equal(asStatus.status, 400)
  t.same(JSON.parse(asStatus.body), TOO_LARGE)
  const page = JSON.parse((await edge.api('history', { ...request, limit: 20 })).body)
  t.equal(page.result.publications.length, 20, 'a part of it is served')
})

t.test('a long response contains multi-byte characters unchanged', async (t) => {
  const edge = await startRelay(t, FILE)
  // A four-byte character at every possible distance from the end of a part.
  const data = list(40, (index) => `${'é'.repeat(index)}${'𝄞'.repeat(40_000)}`)
  for (const each of data) await edge.api('publish', { channel: 'kept:1', data: each })
  const { body } = await edge.api('history', { channel: 'kept:1', limit: -1 })

  t.same(
    JSON.parse(body).result.publications.map((each: { data: string }) => each.data),
    data
  )
})

t.test('a pattern that is longer than a channel name is rejected', async (t) => {
  const { api } = await startRelay(t, FILE)

  t.match(JSON.parse((await api('channels', { pattern: '*'.repeat(1_000_000) })).body), {
    error: { code: 107, message: 'bad request: pattern must not be longer than 1024 characters' }
  })
})

t.test('channels lists all channels of a node with more than one page of them', async (t) => {
  const { relay, client, token } = coreRelay({ ...FILE, client: { channel_limit: 20_000, insecure: true } })
  const names = list(12_345, (index) => `plain:${index}`)
  const subs = Object.fromEntries(names.map((name) => [name, {}]))
  await client().send({ id: 1, connect: { token: token({ sub: '42' }), subs } })
  const calls = new ApiDispatcher(relay, new Counts(), SILENT)
  const channelsOf = async (request: object): Promise<string[]> =>
    Object.keys(
      JSON.parse(String(await calls.runMethod('channels', Buffer.from(JSON.stringify(request))))).result.channels
    )

  t.same(await channelsOf({}), names)
  t.equal((await channelsOf({ pattern: 'plain:*7' })).length, names.filter((name) => name.endsWith('7')).length)
})

t.test('data with more than 50,000 objects and lists is not parsed for a schema', async (t) => {
  const { api } = await startRelay(t, FILE)
  const nested = `${'['.repeat(400_000)}${']'.repeat(400_000)}`
  const publish = async (body: string): Promise<unknown> => JSON.parse((await api('publish', body)).body)

  t.match(await publish(`{"channel":"typed:1","data":${nested}}`), {
    error: { code: 107, message: /^bad request: data holds more than 50000 objects and lists/ }
  })
  t.match(await publish(`{"channel":"plain:1","data":1,"tags":${nested}}`), {
    error: { code: 107, message: 'bad request: tags must not hold more than 50000 objects and lists' }
  })
  t.same(await publish(`{"channel":"plain:1","data":${nested}}`), { result: {} }, 'it is forwarded without validation')
  const base64 = Buffer.from(nested.slice(200_000, 600_000)).toString('base64')
  t.same(await publish(`{"channel":"plain:1","b64data":"${base64}"}`), { result: {} })
  const brackets = JSON.stringify({ type: '['.repeat(200_000) })
  t.match(
    await publish(`{"channel":"typed:1","data":${brackets}}`),
    { error: { code: 107, message: /does not fit PositionBatch/ } },
    'brackets within a text are no lists'
  )
})

t.test('a schema error truncates long field names', (t) => {
  const error = schemaError('PositionBatch', { type: 'position-batch', data: [], [`x${'y'.repeat(100_000)}`]: 1 })

  t.ok((error ?? '').length < 400)
  t.end()
})

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined }

class Counts {
  readonly responded: string[] = []
  readonly rejected: string[] = []
  readonly unexpected: string[] = []

  apiReplied(method: string): void {
    this.responded.push(method)
  }

  apiError(method: string, code: number): void {
    this.rejected.push(`${method} ${code}`)
  }

  unexpectedError(source: string): void {
    this.unexpected.push(source)
  }
}

/** Counts the turns of the event loop during a call. */
const turnsDuring = async (run: () => Promise<unknown>): Promise<number> => {
  let turns = 0
  let isDone = false
  const count = (): void => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await run()
  isDone = true
  return turns
}

t.test('other requests are served during a long API call', async (t) => {
  const { relay } = coreRelay(FILE)
  const calls = new ApiDispatcher(relay, new Counts(), SILENT)
  await calls.runMethod('publish', Buffer.from(JSON.stringify({ channel: 'kept:1', data: 'x'.repeat(1000) })))
  const commands = (count: number, command: object): Buffer => Buffer.from(JSON.stringify(command).repeat(count))
  const bodies: [title: string, run: () => Promise<unknown>][] = [
    [
      '10,000 publishes',
      () => calls.runCommands(commands(10_000, { method: 'publish', params: { channel: 'kept:2', data: 1 } }))
    ],
    [
      'a batch of 10,000 publishes',
      async () => {
        const batch = { commands: list(10_000, (data) => ({ publish: { channel: 'kept:3', data } })) }
        return calls.runMethod('batch', Buffer.from(JSON.stringify(batch)))
      }
    ],
    ['10,000 channels', () => calls.runCommands(commands(10_000, { method: 'channels' }))],
    [
      'a broadcast to 250,000 channels',
      async () =>
        calls.runMethod('broadcast', Buffer.from(`{"channels":[${list(250_000, () => '"a"').join()}],"data":1}`))
    ]
  ]
  for (const [title, run] of bodies) t.ok((await turnsDuring(run)) > 2, title)
})

t.test('publications of one request keep their order around a long broadcast', async (t) => {
  const published: string[] = []
  const { engine } = coreRelay()
  const note = (channel: string, { data }: NewPublication) => {
    published.push(`${channel} ${data}`)
    return { epoch: '', offset: 0, suppressedBy: null }
  }
  const broker = Object.assign(Object.create(engine), {
    start: () => undefined,
    publish: note,
    publishToMany: async (targets: readonly PublishTarget[], publication: NewPublication) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return targets.map(({ channel }) => note(channel, publication))
    }
  })
  const calls = new ApiDispatcher(coreRelay(FILE, { broker }).relay, new Counts(), SILENT)
  const channels = list(100, (index) => `plain:${index}`)
  const commands = [
    { publish: { channel: 'plain:7', data: 1 } },
    { broadcast: { channels, data: 2 } },
    { publish: { channel: 'plain:7', data: 3 } },
    { broadcast: { channels: ['plain:7'], data: 4 } },
    { broadcast: { channels, data: 5 } },
    { publish: { channel: 'plain:7', data: 6 } }
  ]
  await calls.runMethod('batch', Buffer.from(JSON.stringify({ commands })))

  t.same(
    published.filter((each) => each.startsWith('plain:7 ')),
    list(6, (index) => `plain:7 ${index + 1}`)
  )
})

t.test('a broadcast to many channels has results in the order of the channels', async (t) => {
  const { api } = await startRelay(t, FILE)
  const channels = list(300, (index) => ['plain:1', 'nope:1', '', 'typed:1', `kept:${index}`][index % 5])
  const { responses } = JSON.parse((await api('broadcast', { channels, data: 7 })).body).result

  t.equal(responses.length, 300)
  t.same(responses[5], { result: {} })
  t.same(responses[6], { error: { code: 102, message: 'unknown channel' } })
  t.same(responses[7], { error: { code: 107, message: 'bad request: channels must not have an empty name' } })
  t.match(responses[8], { error: { code: 107, message: /does not fit PositionBatch/ } })
  t.match(responses[9], { result: { offset: 1 } })
})

const recordingLog = () => {
  const errors: { readonly facts: object; readonly message: string }[] = []
  return { errors, log: { ...SILENT, error: (facts: object, message: string) => void errors.push({ facts, message }) } }
}

t.test('an unexpected error in an API call fails that call with error 100, is logged and counted', async (t) => {
  const { engine } = coreRelay()
  const broken = new TypeError('broken')
  const failures: [title: string, publish: (channel: string) => unknown][] = [
    [
      'thrown',
      () => {
        throw broken
      }
    ],
    [
      'rejected',
      async () => {
        throw broken
      }
    ]
  ]
  for (const [title, fail] of failures) {
    const broker = Object.assign(Object.create(engine), {
      start: () => undefined,
      publish: (...[channel, ...rest]: Parameters<typeof engine.publish>) =>
        channel === 'kept:bad' ? fail(channel) : engine.publish(channel, ...rest)
    })
    const { errors, log } = recordingLog()
    const counts = new Counts()
    const calls = new ApiDispatcher(coreRelay(FILE, { broker }).relay, counts, log)
    const publish = (channel: string) => ({ method: 'publish', params: { channel, data: 1 } })
    const body = [publish('kept:1'), publish('kept:bad'), publish('kept:1')]
      .map((each) => JSON.stringify(each))
      .join('')
    const replies = lines(String(await calls.runCommands(Buffer.from(body))))

    t.match(replies[0], { result: Object }, title)
    t.same(replies[1], { error: { code: 100, message: 'internal server error' } })
    t.match(replies[2], { result: Object })
    const many = { channels: list(100, () => 'kept:bad'), data: 1 }
    t.match(
      await calls.runMethod('broadcast', Buffer.from(JSON.stringify(many))),
      { code: 100 },
      `${title} in a broadcast`
    )
    t.same(counts.unexpected, ['api', 'api'])
    t.same(counts.rejected, ['publish 100', 'broadcast 100'])
    t.match(errors, [
      { facts: { err: broken, command: 'publish' }, message: 'API call failed' },
      { facts: { err: broken, command: 'broadcast' }, message: 'API call failed' }
    ])
  }
})

t.test('a request whose reply cannot be written receives error 100', async (t) => {
  class Broken extends ApiDispatcher {
    override runMethod(): never {
      throw new RangeError('Invalid string length')
    }
  }
  const { relay } = coreRelay()
  const failed: unknown[] = []
  const url = await serve(t, new Broken(relay, new Counts(), SILENT), (error) => failed.push(error))
  const { status, body } = await send(url, '/api/info', {
    method: 'POST',
    body: '{}',
    headers: { 'x-api-key': API_KEY }
  })

  t.equal(status, 200)
  t.same(JSON.parse(body), { error: { code: 100, message: 'internal server error' } })
  t.match(failed, [{ message: 'Invalid string length' }])
})

const serve = async (t: Test, dispatcher: ApiDispatcher, failed: (error: unknown) => void): Promise<string> => {
  const config = {
    key: API_KEY,
    previousKey: null,
    insecure: false,
    maxBodyBytes: MIB,
    errorMode: 'default' as const,
    isExternal: false
  }
  const api = serverApi({
    dispatcher,
    config: () => config,
    isDraining: () => false,
    keyRejected: () => undefined,
    failed,
    tracer: null
  })
  const server = createServer((request, response) => api(request, response, '/api/info'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}
