import { once } from 'node:events'
import t, { type Test } from 'tap'
import { connectedClient, type Json, type RawClient } from '../helper/raw-client.js'
import { connectClient, type EdgeRelay, officialClient, startRelay } from '../helper/relay.js'
import type { ServerMessage } from '../helper/server-message.js'

const OPEN = { allow_subscribe_for_client: true, history_size: 1000, history_ttl: '300s', force_recovery: true }
// A client that does not read sends no pongs, and would be closed for that on a busy machine.
const NO_PINGS = { ping_interval: '10000000s' }

const NAMESPACES = {
  client: NO_PINGS,
  channel: {
    namespaces: [
      { name: 'floor', ...OPEN, conflate: 'data[].transmitterId' },
      { name: 'plain', ...OPEN }
    ]
  }
}

// 18 MB, more than the buffers of a connection.
const BATCHES = 150
const TRANSMITTERS = 70
const PER_BATCH = 40

/** A batch of about 120 KB. Every transmitter is in most batches, and none is in all of them. */
const batch = (n: number): Json => ({
  type: 'position-batch',
  data: Array.from({ length: PER_BATCH }, (_, index) => ({
    transmitterId: `t${(n * 7 + index) % TRANSMITTERS}`,
    n,
    filler: 'x'.repeat(3000)
  }))
})

interface PositionPublication {
  readonly data: { readonly data: { readonly transmitterId: string; readonly n: number }[] }
  readonly offset: number
}

// The relay delivers the data of `batch` unchanged, which the tests verify.
const pubOf = ({ push }: ServerMessage): PositionPublication | undefined => push?.pub as PositionPublication | undefined

/** Reads publications until the one with this offset has arrived. */
const readTo = async (client: RawClient, offset: number): Promise<PositionPublication[]> => {
  const pubs: PositionPublication[] = []
  for (;;) {
    const pub = pubOf(await client.next())
    if (pub !== undefined) pubs.push(pub)
    if (pub !== undefined && pub.offset >= offset) return pubs
  }
}

const subscriber = async (t: Test, { url }: EdgeRelay, channel: string): Promise<RawClient> => {
  const client = await connectedClient(t, url)
  await client.request({ id: 2, subscribe: { channel } })
  return client
}

/** The number in the newest entry of every transmitter. */
const newest = (pubs: readonly PositionPublication[]): Map<string, number> => {
  const known = new Map<string, number>()
  for (const { data } of pubs) for (const { transmitterId, n } of data.data) known.set(transmitterId, n)
  return known
}

t.test('a client that stops reading', async (t) => {
  t.test(
    `a client that stops reading receives the newest entry of every key after ${BATCHES} conflated batches`,
    async (t) => {
      const edge = await startRelay(t, NAMESPACES)
      const [reader, stopped] = [await subscriber(t, edge, 'floor:7'), await subscriber(t, edge, 'floor:7')]
      stopped.ws.pause()
      const all = readTo(reader, BATCHES)
      let most = 0
      for (let n = 1; n <= BATCHES; n++) {
        await edge.publish('floor:7', batch(n))
        for (const { outbox, subscriptions } of edge.relay.clients) {
          most = Math.max(most, outbox.unsentBytes + (subscriptions.get('floor:7')?.backlog?.bytes ?? 0))
        }
      }
      const received = await all
      t.same(
        received.map(({ offset }) => offset),
        Array.from({ length: BATCHES }, (_, index) => index + 1),
        'another reader gets everything, as it was published'
      )
      t.ok(most < 1024 * 1024, `what waited for the one that stopped stayed below its limit: ${most} bytes`)

      stopped.ws.resume()
      const late = await readTo(stopped, BATCHES)
      t.ok(late.length < BATCHES, `merged into ${late.length}`)
      t.same(newest(late), newest(received))
      t.same(
        late.map(({ offset }) => offset),
        late.map(({ offset }) => offset).sort((a, b) => a - b),
        'offsets only go up'
      )
      t.equal(late.at(-1)?.offset, BATCHES)

      await edge.publish('floor:7', batch(BATCHES + 1))
      const [next] = await readTo(stopped, BATCHES + 1)
      t.same(next?.data, batch(BATCHES + 1), 'later publications arrive unmerged')
    }
  )

  t.test('a client that stops reading is closed if nothing can be merged, and does not delay others', async (t) => {
    const edge = await startRelay(t, NAMESPACES)
    const [reader, stopped] = [await subscriber(t, edge, 'plain:1'), await subscriber(t, edge, 'plain:1')]
    stopped.ws.pause()
    const all = readTo(reader, BATCHES)
    for (let n = 1; n <= BATCHES; n++) await edge.publish('plain:1', batch(n))

    t.equal((await all).length, BATCHES)
    t.equal(edge.relay.stats().clients, 1)
    stopped.ws.resume()
    t.match(await stopped.closed, /^(3008 slow|1006)$/)
  })

  t.test('a client that stops reading is closed if its merged publications exceed the limit', async (t) => {
    const edge = await startRelay(t, { ...NAMESPACES, client: { ...NO_PINGS, queue_max_size: 65_536 } })
    const [reader, stopped] = [await subscriber(t, edge, 'floor:7'), await subscriber(t, edge, 'floor:7')]
    stopped.ws.pause()
    const all = readTo(reader, BATCHES)
    for (let n = 1; n <= BATCHES; n++) await edge.publish('floor:7', batch(n))

    await all
    t.equal(edge.relay.stats().clients, 1)
  })

  t.test('a slow client that reconnects recovers', async (t) => {
    const edge = await startRelay(t, NAMESPACES)
    const stopped = await subscriber(t, edge, 'plain:1')
    const { epoch } = await edge.publish('plain:1', batch(1))
    const [first] = await readTo(stopped, 1)
    stopped.ws.terminate()
    await once(stopped.ws, 'close')
    for (let n = 2; n <= 5; n++) await edge.publish('plain:1', batch(n))
    const back = await connectedClient(t, edge.url)

    t.match(
      await back.request({ id: 2, subscribe: { channel: 'plain:1', recover: true, epoch, offset: first?.offset } }),
      {
        subscribe: { recovered: true, publications: [{ offset: 2 }, { offset: 3 }, { offset: 4 }, { offset: 5 }] }
      }
    )
  })
})

for (const transport of ['websocket', 'http_stream', 'sse'] as const) {
  t.test(`a client over ${transport} is not behind after a write that the network accepts`, async (t) => {
    const edge = await startRelay(t, NAMESPACES)
    await connectClient(officialClient(t, edge, transport))
    const [client] = edge.relay.clients

    for (let n = 1; n <= 3; n++) {
      client?.push({ kind: 'join', channel: 'plain:1', info: `{"user":"${n}","client":"c"}` }, 'plain')
      t.equal(client?.isBehind, false)
    }
  })
}
