import t, { type Test } from 'tap'
import type {
  Broker,
  Bucket,
  Delivery,
  History,
  HistoryRange,
  JoinOrLeave,
  Presence,
  UserConnection,
  UserConnections,
  UserRates
} from '../../../src/relay/core/engine.js'
import type { ChannelOptions } from '../../../src/relay/core/options.js'
import type { NewPublication, Payload, Position, Publication } from '../../../src/relay/core/publication.js'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { configOf } from '../../helper/relay-rules.js'
import { required } from '../../helper/required.js'

export interface EngineUnderTest {
  readonly broker: Broker
  readonly history: History
  readonly presence: Presence
  readonly userConnections: UserConnections
  readonly userRates: UserRates
  /** Advances the time of the engine. */
  advance(ms: number): Promise<void> | void
}

export const optionsOf = (options: Readonly<Record<string, unknown>>): ChannelOptions => {
  const { channels } = configOf({ channel: { namespaces: [{ name: 'ns', ...options }] } })
  return required(channels.namespaces.get('ns'))
}

export const WITH_HISTORY = optionsOf({ history_size: 3, history_ttl: '60s', history_meta_ttl: '3600s' })
export const PLAIN = optionsOf({})
export const ALL: HistoryRange = { since: null, limit: -1, reverse: false }

/** Records everything that an engine delivers. `until` waits for a number of deliveries. */
export class Delivered implements Delivery {
  readonly publications: (readonly [channel: string, publication: Publication, epoch: string])[] = []
  readonly events: (readonly [channel: string, kind: JoinOrLeave, info: string])[] = []
  #check = (): void => undefined

  publication(channel: string, publication: Publication, epoch: string): void {
    this.publications.push([channel, publication, epoch])
    this.#check()
  }

  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void {
    this.events.push([channel, kind, info])
    this.#check()
  }

  /** Channels on which publications may have been lost. */
  readonly missed: string[] = []

  mayHaveMissed(channel: string): void {
    this.missed.push(channel)
  }

  positions(): Iterable<readonly [string, Position]> {
    const withOffset = this.publications.filter(([, { offset }]) => offset > 0)
    return new Map(withOffset.map(([channel, { offset }, epoch]): [string, Position] => [channel, { epoch, offset }]))
  }

  until(publications: number, events = 0): Promise<void> {
    return new Promise((resolve) => {
      this.#check = () => {
        if (this.publications.length >= publications && this.events.length >= events) resolve()
      }
      this.#check()
    })
  }
}

/** The tests that every engine passes. */
export const engineContract = (name: string, create: (t: Test) => Promise<EngineUnderTest>): void => {
  t.test(name, async (t) => {
    const setUp = async (t: Test) => {
      const engine = await create(t)
      const delivered = new Delivered()
      await engine.broker.start(delivered)
      await engine.broker.subscribe('ns:1')
      const publish = (data: Payload, more: Partial<NewPublication> = {}, options = WITH_HISTORY, channel = 'ns:1') =>
        engine.broker.publish(channel, { ...PLAIN_PUBLICATION, data, ...more }, options)
      const read = (range: Partial<HistoryRange> = {}) =>
        engine.history.read('ns:1', { ...ALL, ...range }, WITH_HISTORY)
      return { ...engine, delivered, publish, read }
    }

    t.test('publications are delivered in order, with offsets from 1 and one epoch', async (t) => {
      const { delivered, publish } = await setUp(t)
      const first = await publish('1')
      await publish('2')
      await publish('"é\\n"', { info: '{"user":"u"}', tags: '{"a":"b"}', delta: true })
      await delivered.until(3)

      t.match(first, { offset: 1, epoch: /^.+$/, suppressedBy: null })
      t.same(
        delivered.publications.map(([channel, { data, offset, info, tags, delta }, epoch]) => [
          channel,
          data,
          offset,
          info,
          tags,
          delta,
          epoch
        ]),
        [
          ['ns:1', '1', 1, null, null, false, first.epoch],
          ['ns:1', '2', 2, null, null, false, first.epoch],
          ['ns:1', '"é\\n"', 3, '{"user":"u"}', '{"a":"b"}', true, first.epoch]
        ]
      )
    })

    t.test('binary data is delivered and stored unchanged', async (t) => {
      const { delivered, publish, read } = await setUp(t)
      const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
      await publish(everyByte, { tags: '{"a":"b"}', info: '{"user":"u"}' })
      await publish('"text"')
      await publish(Buffer.alloc(0))
      await publish(Buffer.from([0]), { skipHistory: true, version: 3 })
      await delivered.until(4)

      const data = delivered.publications.map(([, publication]) => publication.data)
      t.same(data, [everyByte, '"text"', Buffer.alloc(0), Buffer.from([0])])
      t.ok(Buffer.isBuffer(data[0]))
      t.same(
        (await read()).publications.map((publication) => [publication.data, publication.tags]),
        [
          [everyByte, '{"a":"b"}'],
          ['"text"', null],
          [Buffer.alloc(0), null]
        ]
      )
    })

    t.test('a subscribed channel is reported as delivering', async (t) => {
      const { broker } = await setUp(t)

      t.ok(broker.isDelivering('ns:1'))
    })

    t.test('a publication without history has no offset', async (t) => {
      const { delivered, publish, read } = await setUp(t)
      t.match(await publish('1', {}, PLAIN), { offset: 0, epoch: '' })
      t.match(await publish('2', { skipHistory: true }), { offset: 0 })
      await delivered.until(2)

      t.match(delivered.publications, [
        ['ns:1', { offset: 0 }],
        ['ns:1', { offset: 0 }]
      ])
      t.same((await read()).publications, [])
    })

    t.test('the history is limited to its size', async (t) => {
      const { publish, read } = await setUp(t)
      for (const data of ['1', '2', '3', '4', '5']) await publish(data)

      t.match(await read(), { offset: 5, publications: [{ data: '3', offset: 3 }, { data: '4' }, { data: '5' }] })
      t.equal((await read()).publications.length, 3)
    })

    t.test('the history is read from a position, forwards and backwards', async (t) => {
      const { publish, read } = await setUp(t)
      for (const data of ['1', '2', '3']) await publish(data)
      const { epoch } = await read()
      const offsets = async (range: Partial<HistoryRange>) =>
        (await read(range)).publications.map(({ offset }) => offset)

      t.same(await offsets({ since: { epoch, offset: 1 } }), [2, 3])
      t.same(await offsets({ since: { epoch, offset: 3 } }), [])
      t.same(await offsets({ since: { epoch, offset: 3 }, reverse: true }), [2, 1])
      t.same(await offsets({ reverse: true, limit: 2 }), [3, 2])
      t.same(await offsets({ limit: 1 }), [1])
      t.same(await offsets({ limit: 0 }), [])
    })

    t.test('reading a channel without publications creates its position', async (t) => {
      const { read, publish } = await setUp(t)
      const { epoch, offset } = await read({ limit: 0 })
      t.equal(offset, 0)

      t.match(await publish('1'), { epoch, offset: 1 })
    })

    t.test('publications expire, and offsets continue', async (t) => {
      const { publish, read, advance } = await setUp(t)
      const { epoch } = await publish('1')
      await advance(61_000)

      t.same((await read()).publications, [])
      t.match(await publish('2'), { epoch, offset: 2 })
    })

    t.test('a publication expires at its own age, while later ones remain', async (t) => {
      const { publish, read, advance } = await setUp(t)
      await publish('1')
      await advance(40_000)
      await publish('2')
      await advance(30_000)

      t.match(await read(), { offset: 2, oldest: 2, publications: [{ data: '2', offset: 2 }] })
      t.equal((await read()).publications.length, 1)
      t.match(await read({ limit: 0 }), { offset: 2, oldest: 2, publications: [] })
    })

    t.test('a page has the offset of the oldest publication in the history', async (t) => {
      const { history, publish, read } = await setUp(t)
      t.match(await read(), { offset: 0, oldest: 1 })
      for (const data of ['1', '2']) await publish(data)
      const { epoch, oldest } = await read({ limit: 0 })
      t.equal(oldest, 1)
      for (const data of ['3', '4', '5']) await publish(data)
      t.equal((await read({ since: { epoch, offset: 4 } })).oldest, 3)
      await history.remove('ns:1')

      t.match(await read(), { offset: 5, oldest: 6 })
    })

    t.test('the history is removed, and offsets continue', async (t) => {
      const { history, publish, read } = await setUp(t)
      const { epoch } = await publish('1')
      await history.remove('ns:1')

      t.same((await read()).publications, [])
      t.match(await publish('2'), { epoch, offset: 2 })
    })

    t.test('a second publication with the same idempotency key is suppressed', async (t) => {
      const { delivered, publish } = await setUp(t)
      const first = await publish('1', { idempotencyKey: 'k' })
      const second = await publish('1', { idempotencyKey: 'k' })
      t.match(second, { offset: first.offset, epoch: first.epoch, suppressedBy: 'idempotency' })
      await publish('1', { idempotencyKey: 'other' })
      await delivered.until(2)

      t.equal(delivered.publications.length, 2)
    })

    t.test('a publication with an older version is suppressed', async (t) => {
      const { publish } = await setUp(t)
      await publish('1', { version: 5 })

      t.match(await publish('2', { version: 5 }), { offset: 1, suppressedBy: 'version' })
      t.match(await publish('3', { version: 6 }), { offset: 2, suppressedBy: null })
      t.match(await publish('4', { version: 1, versionEpoch: 'new' }), { offset: 3, suppressedBy: null })
    })

    t.test('the version of a publication is delivered and stored', async (t) => {
      const { delivered, publish, read } = await setUp(t)
      await publish('1', { version: 5 })
      await publish('2', { version: 9_007_199_254_740_991 })
      await publish('3')
      await publish('4', { version: 7, skipHistory: true })
      await delivered.until(4)
      const versions = (publications: readonly { readonly version: number }[]) =>
        publications.map(({ version }) => version)

      t.same(versions((await read()).publications), [5, 9_007_199_254_740_991, 0])
      t.same(versions(delivered.publications.map(([, publication]) => publication)), [5, 9_007_199_254_740_991, 0, 7])
    })

    t.test('publishing to many channels equals publishing to each of them', async (t) => {
      const { broker, delivered, publish, read } = await setUp(t)
      if (broker.publishToMany === undefined) return
      const channels = Array.from({ length: 300 }, (_, index) => `ns:${index}`)
      // Every third without history; one channel twice.
      const targets = [...channels, 'ns:1'].map((channel, index) => ({
        channel,
        options: index % 3 === 2 ? PLAIN : WITH_HISTORY
      }))
      const all = (data: string, more: Partial<NewPublication> = {}) =>
        broker.publishToMany?.(targets, { ...PLAIN_PUBLICATION, data, ...more })
      const received = (): unknown[] => delivered.publications.map(([, { data, offset }]) => [data, offset])
      await publish('"first"')
      const results = await all('"é"', { tags: '{"a":"b"}' })
      await publish('"last"')
      await delivered.until(4)

      t.equal(results?.length, 301)
      t.match(results?.[0], { offset: 1, suppressedBy: null })
      t.same(results?.[2], { epoch: '', offset: 0, suppressedBy: null })
      t.same(
        [results?.[1], results?.[300]].map((each) => each && 'offset' in each && each.offset),
        [2, 3]
      )
      t.same(received(), [
        ['"first"', 1],
        ['"é"', 2],
        ['"é"', 3],
        ['"last"', 4]
      ])
      t.match((await read()).publications, [
        { data: '"é"', tags: '{"a":"b"}', offset: 2 },
        { offset: 3 },
        { offset: 4 }
      ])
      t.match(delivered.publications[1], [
        'ns:1',
        { tags: '{"a":"b"}' },
        results?.[1] && 'epoch' in results[1] && results[1].epoch
      ])

      await all('1', { idempotencyKey: 'k' })
      const again = await all('2', { idempotencyKey: 'k' })
      t.match(again?.[0], { offset: 2, suppressedBy: 'idempotency' })
      t.match(again?.[2], { offset: 0, suppressedBy: 'idempotency' })
      await all('3', { version: 5 })
      t.match((await all('4', { version: 5 }))?.[0], { offset: 3, suppressedBy: 'version' })
    })

    t.test('a long text is published to many channels', async (t) => {
      const { broker, history, delivered } = await setUp(t)
      if (broker.publishToMany === undefined) return
      const data = JSON.stringify('x'.repeat(500_000))
      const targets = Array.from({ length: 40 }, (_, index) => ({ channel: `ns:${index}`, options: WITH_HISTORY }))
      const results = await broker.publishToMany(targets, { ...PLAIN_PUBLICATION, data })
      await delivered.until(1)

      t.same(
        results.map((each) => 'offset' in each && each.offset),
        targets.map(() => 1)
      )
      t.equal(delivered.publications[0]?.[1].data.length, data.length)
      for (const { channel } of targets) {
        t.equal((await history.read(channel, ALL, WITH_HISTORY)).publications[0]?.data.length, data.length)
      }
    })

    t.test('joins and leaves are delivered', async (t) => {
      const { broker, delivered } = await setUp(t)
      await broker.joinOrLeave('ns:1', 'join', '{"user":"u"}')
      await broker.joinOrLeave('ns:1', 'leave', '{"user":"u"}')
      await delivered.until(0, 2)

      t.same(delivered.events, [
        ['ns:1', 'join', '{"user":"u"}'],
        ['ns:1', 'leave', '{"user":"u"}']
      ])
    })

    t.test('connections of a user are counted up to the limit', async (t) => {
      const { userConnections } = await setUp(t)
      const connection = (client: string): UserConnection => ({ user: '{é}', node: 'n', client })
      const [first, second, third] = [connection('a'), connection('b'), connection('c')]
      t.equal(await userConnections.add(first, 2), null)
      t.equal(await userConnections.add(first, 2), null, 'once each')
      t.equal(await userConnections.add(second, 2), null)
      t.not(await userConnections.add(third, 2), null)
      t.equal(await userConnections.add({ ...third, user: 'another' }, 2), null)
      await userConnections.remove(first)

      t.equal(await userConnections.add(third, 2), null)
      t.equal(await userConnections.add(first, Number.POSITIVE_INFINITY), null)
    })

    t.test('tokens of a user are taken from all buckets or none, and come back with time', async (t) => {
      const { userRates, advance } = await setUp(t)
      const two = { name: 'ns:publish:2/3600000', rate: 2, intervalMs: 3_600_000 }
      const six = { name: 'ns:publish:6/60000000', rate: 6, intervalMs: 60_000_000 }
      const take = async (user: string, ...buckets: Bucket[]) => userRates.take(user, buckets)
      t.same(
        [await take('{é}', two, six), await take('{é}', two, six), await take('{é}', two, six)],
        [true, true, false]
      )
      t.equal(await take('another', two), true)
      for (let left = 4; left > 0; left--) t.equal(await take('{é}', six), true, 'not taken by the rejected command')
      t.equal(await take('{é}', six), false)
      await advance(1_800_000)

      t.same([await take('{é}', two), await take('{é}', two)], [true, false])
      await advance(60_000_000)
      t.same([await take('{é}', two), await take('{é}', two), await take('{é}', two)], [true, true, false])
    })

    t.test('presence lists and counts clients and users', async (t) => {
      const { presence } = await setUp(t)
      await presence.add('ns:1', 'c1', 'ada', '{"user":"ada"}')
      await presence.add('ns:1', 'c2', 'ada', '{"user":"ada"}')
      await presence.add('ns:1', 'c3', 'bob', '{"user":"bob"}')
      await presence.add('ns:2', 'c4', 'eve', '{"user":"eve"}')
      t.same(await presence.count('ns:1'), { clients: 3, users: 2 })
      await presence.remove('ns:1', 'c2')
      await presence.remove('ns:1', 'c9')

      t.same(
        await presence.read('ns:1'),
        new Map([
          ['c1', '{"user":"ada"}'],
          ['c3', '{"user":"bob"}']
        ])
      )
      t.same(await presence.count('ns:9'), { clients: 0, users: 0 })
    })
  })
}
