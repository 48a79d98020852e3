import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import type { Figures } from '../../../src/relay/admin/contract.js'
import { EventStream, livePublication } from '../../../src/relay/admin/live.js'
import { portOf } from '../../helper/address.js'
import { ADMIN_PASSWORD, operator } from '../../helper/admin.js'
import { eventually } from '../../helper/eventually.js'
import { connectedClient } from '../../helper/raw-client.js'
import { startRelay } from '../../helper/relay.js'

const ON = { RELAY_ADMIN_PASSWORD: ADMIN_PASSWORD }
const BATCH = { type: 'position-batch', data: [] }

/** Counts the surveys for figures at this node. */
const countSurveys = (relay: Awaited<ReturnType<typeof startRelay>>) => {
  const { surveyHandlers } = relay.relay
  const counter = { count: 0 }
  const handle = surveyHandlers.handle.bind(surveyHandlers)
  surveyHandlers.handle = (survey, params) => {
    if (String(survey) === 'adminFigures') counter.count++
    return handle(survey, params)
  }
  return counter
}

t.test('live stream', async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const one = await operator(relay)

  t.test('the live stream sends figures that change with the traffic', async (t) => {
    const live = await one.live(t)
    t.equal(live.status, 200)
    t.match(live.response.headers, {
      'content-type': /^text\/event-stream/,
      'cache-control': /no-store/,
      'content-security-policy': /frame-ancestors 'none'/
    })
    await live.next('history')
    const figures = (isMeant: (figures: Figures) => boolean) =>
      live.next('sample', ({ nodes }) => nodes[0] !== undefined && isMeant(nodes[0]))
    await figures(({ connections, publishesPerSecond }) => connections === 0 && publishesPerSecond === 0)

    const client = await connectedClient(t, relay.url)
    await client.request({ id: 2, subscribe: { channel: 'floor:1' } })
    const moved = figures(({ deliveriesPerSecond }) => deliveriesPerSecond > 0)
    await relay.publish('floor:1', BATCH)
    const { time, nodes } = await moved
    t.ok(time > 0)
    t.match(nodes, [{ name: 'relay', connections: 1, subscriptions: 1, channels: 1, queuedBytes: 0, slowReaders: 0 }])
    for (const name of ['publishesPerSecond', 'bytesPerSecond', 'memoryBytes'] as const)
      t.ok((nodes[0]?.[name] ?? 0) > 0)

    const disconnected = figures(
      ({ connections, deliveriesPerSecond }) => connections === 0 && deliveriesPerSecond === 0
    )
    client.ws.terminate()
    await disconnected
  })

  t.test('the live stream starts with the figures that were recorded without an open page', async (t) => {
    const unwatched = await startRelay(t, undefined, ON)
    const client = await connectedClient(t, unwatched.url)
    const operatorThere = await operator(unwatched)
    await eventually(async () => {
      const history = await operatorThere.history(t)
      return history.some(({ nodes: [node] }) => node?.name === 'relay' && node.connections === 1)
    })
    client.ws.terminate()
  })

  t.test('the history of figures contains fifteen minutes', async (t) => {
    await eventually(async () => (await one.history(t)).length > 0)
    const history = await one.history(t)
    t.match(history[0], { nodes: [{ name: 'relay' }] })
    relay.advance(15 * 60_000)
    await one.signIn()
    const later = await one.history(t)
    t.ok(
      later.every(({ time }) => time > (history.at(-1)?.time ?? 0)),
      'earlier samples are dropped'
    )
  })

  t.test('the live stream sends the publications of the selected channel without subscribers', async (t) => {
    const live = await one.live(t, '?channel=floor:seen')
    await live.next('history')
    const publication = live.next('publication')
    await relay.publish('floor:unseen', BATCH)
    await relay.publish('floor:seen', { type: 'position-batch', data: [], text: '<img src=x onerror=alert(1)>' })
    t.match(await publication, { channel: 'floor:seen', offset: 1, isTruncated: false, data: /onerror/ })
    const long = live.next('publication')
    await relay.publish('floor:seen', { type: 'x'.repeat(1_000_000) })
    const { data, isTruncated, size } = await long
    t.match({ length: data.length, isTruncated, size }, { length: 1_000_011, isTruncated: false, size: 1_000_011 })
    t.same(JSON.parse((await relay.api('channels', {})).body), { result: { channels: {} } })
    t.equal(relay.relay.stats().channels, 0)
    live.close()
    await live.closed
    await eventually(() => relay.relay.openChannels.size === 0)
  })

  t.test('the live stream says how many publications of a fast channel it skipped', async (t) => {
    const live = await one.live(t, '?channel=floor:fast')
    await live.next('history')
    const sent: number[] = []
    const skipped = live.next('skipped')
    live.response.on('data', (text: string) => sent.push(text.split('event: publication\n').length - 1))
    const command = { publish: { channel: 'floor:fast', data: BATCH } }
    await relay.api('batch', { commands: Array.from({ length: 100 }, () => command) })
    t.equal(await skipped, 80)
    t.equal(
      sent.reduce((sum, count) => sum + count, 0),
      20
    )
    const later = live.next('publication')
    await relay.publish('floor:fast', BATCH)
    t.match(await later, { offset: 101 })
  })

  t.test('a publication is truncated after one megabyte in a second', async (t) => {
    const publication = { data: 'x'.repeat(5000), offset: 3, time: 1, info: null, tags: null, delta: false, version: 0 }
    t.match(livePublication('floor:1', publication), { isTruncated: true, size: 5000, data: /^x{4096}$/ })
    const binary = { ...publication, data: Buffer.from('x'.repeat(5000)) }
    t.match(livePublication('floor:1', binary), { isTruncated: true, isBinary: true, size: 5000 })
  })

  t.test('subscribers still receive publications after a page stops observing their channel', async (t) => {
    const live = await one.live(t, '?channel=floor:both')
    await live.next('history')
    const client = await connectedClient(t, relay.url)
    await client.request({ id: 2, subscribe: { channel: 'floor:both' } })
    live.close()
    await live.closed
    await relay.publish('floor:both', BATCH)
    t.match(await client.next(), { push: { channel: 'floor:both' } })
  })

  t.test('the live stream accepts any channel name', async (t) => {
    for (const name of ['nonsense:x', '', '%00', 'x'.repeat(1000), '<script>']) {
      const live = await one.live(t, `?channel=${encodeURIComponent(name)}`)
      t.equal(live.status, 200)
      await live.next('history')
      live.close()
    }
  })
})

/** The number of timers that keep the process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

t.test('collecting figures', async (t) => {
  const relay = await startRelay(t, undefined, ON)
  const one = await operator(relay)
  const counter = countSurveys(relay)
  const timersBefore = timers()

  t.test('figures are collected once per second for any number of pages', async (t) => {
    t.equal(counter.count, 0, 'no survey runs without a page')
    const pages = await Promise.all(Array.from({ length: 10 }, () => one.live(t)))
    const received = await Promise.all(
      pages.map(async (page) => {
        const times: number[] = []
        await page.next('sample', ({ time }) => times.push(time) === 3)
        return times
      })
    )
    const samples = new Set(received.flat()).size
    t.ok(counter.count >= 3 && counter.count <= samples + 2, 'count once for each sample, and once before the first')
    t.ok(timers() > timersBefore)
    for (const page of pages) page.close()
  })

  t.test('figures are not collected after the last page is closed', async (t) => {
    // Without `eventually`, which uses a timer itself.
    while (timers() > timersBefore) await new Promise(setImmediate)
    const { count } = counter
    await one.get('session')
    t.equal(counter.count, count)
  })
})

/** A response whose client does not read. */
const unread = (t: Test): Promise<ServerResponse> =>
  new Promise((resolve) => {
    const server = createServer((_request, response) => resolve(response))
    server.listen(0, '127.0.0.1', () => {
      const socket = connect(portOf(server), '127.0.0.1')
      socket.on('error', () => undefined)
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      t.teardown(() => {
        socket.destroy()
        server.close()
      })
    })
  })

t.test('a page that does not read its stream', async (t) => {
  let nowMs = 0
  const response = await unread(t)
  const stream = new EventStream(response, [], () => nowMs)
  const event = `data: ${'x'.repeat(64 * 1024)}\n\n`

  t.test('a stream that is not read has a limited queue', async (t) => {
    let most = 0
    for (let events = 0; events < 1000; events++) {
      stream.send(event)
      most = Math.max(most, response.writableLength)
      if (events % 10 === 0) await new Promise(setImmediate)
    }
    t.ok(most > event.length, 'the stream is behind')
    t.ok(most < 512 * 1024)
  })

  t.test('a stream that is not read for 30 s is closed', async (t) => {
    nowMs += 29_000
    stream.send(event)
    t.notOk(response.destroyed)
    nowMs += 2000
    stream.send(event)
    t.ok(response.destroyed)
  })

  t.test('an ended stream that is not read is closed', async (t) => {
    const response = await unread(t)
    const ended = new EventStream(response, [], () => nowMs)
    while (response.writableLength === 0) ended.send(event)
    ended.end('event: end\n\n')
    ended.send(event)
    await once(response, 'close')
    t.equal(response.destroyed, true)
  })
})
