import type { Centrifuge, PublicationContext, SubscribedContext, Subscription } from 'centrifuge'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { PLAIN_PUBLICATION } from '../../src/relay/core/publish/publish.js'
import { environment } from '../helper/environment.js'
import { eventually } from '../helper/eventually.js'
import { startRedis } from '../helper/redis.js'
import { type EdgeRelay, officialClient, officialProtobufClient, startRelay } from '../helper/relay.js'
import { startWorkers } from '../helper/relay-workers.js'
import { FAST_TIMERS, runModel } from './model-runs.js'

// Random interleavings of publish, subscribe, disconnect, recover and rate classes with the official client. After each, every
// client has the state that a model computes from the publications and the position in the client's subscribe reply.

const HISTORY_SIZE = 6

const OPTIONS = {
  allow_subscribe_for_client: true,
  history_size: HISTORY_SIZE,
  history_ttl: '3600s',
  force_recovery: true,
  conflate: 'data[].id',
  snapshot: true,
  allow_max_rate: true
}

const NAMESPACES = {
  channel: {
    namespaces: [
      { name: 'timed', ...OPTIONS, entry_time: 'at' },
      { name: 'plain', ...OPTIONS }
    ]
  }
}

interface Entry {
  readonly id: number
  readonly at: number
  readonly n: number
}

type Data = { readonly data: readonly Entry[] } | { readonly other: number }

type Step =
  | { readonly kind: 'publish'; readonly entries: readonly { readonly id: number; readonly at: number }[] }
  | { readonly kind: 'publishOther' }
  | { readonly kind: 'connect' | 'disconnect' | 'resubscribe'; readonly client: number }
  | { readonly kind: 'removeHistory' }

interface Interleaving {
  readonly namespace: 'timed' | 'plain'
  readonly rates: readonly (number | null)[]
  readonly steps: readonly Step[]
}

/** A relay under test. */
interface World {
  readonly ports: readonly number[]
  readonly rates: readonly (number | null)[]
  publish(channel: string, data: Data): Promise<number>
  removeHistory(channel: string): Promise<unknown>
}

const CLIENTS = 3

const interleavings = (rates: readonly (number | null)[]): fc.Arbitrary<Interleaving> => {
  const client = fc.integer({ min: 0, max: CLIENTS - 1 })
  const entry = fc.record({ id: fc.integer({ min: 1, max: 5 }), at: fc.integer({ min: 0, max: 9 }) })
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ kind: fc.constant('publish' as const), entries: fc.array(entry, { maxLength: 4 }) })
    },
    fc.record({ kind: fc.constant('publishOther' as const) }),
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('connect' as const), client }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('disconnect' as const), client }) },
    fc.record({ kind: fc.constant('resubscribe' as const), client }),
    fc.record({ kind: fc.constant('removeHistory' as const) })
  )
  return fc.record({
    namespace: fc.constantFrom('timed' as const, 'plain' as const),
    rates: fc.array(fc.constantFrom(...rates), { minLength: CLIENTS, maxLength: CLIENTS }),
    steps: fc.array(step, { minLength: 4, maxLength: 18, size: 'max' })
  })
}

/** The state of an application that keeps the newest entry of every key. */
class State {
  readonly #isTimed: boolean
  readonly entries = new Map<number, Entry>()

  constructor(isTimed: boolean) {
    this.#isTimed = isTimed
  }

  apply(data: Data): void {
    if (!('data' in data)) return
    for (const entry of data.data) {
      const known = this.entries.get(entry.id)
      if (this.#isTimed && known !== undefined && entry.at < known.at) continue
      this.entries.set(entry.id, entry)
    }
  }

  toString(): string {
    return JSON.stringify([...this.entries].sort(([one], [other]) => one - other))
  }
}

/** The publications of a channel, by offset. */
class Model {
  readonly isTimed: boolean
  readonly publications: Data[] = []
  removedUpTo = 0

  constructor(isTimed: boolean) {
    this.isTimed = isTimed
  }

  get top(): number {
    return this.publications.length
  }

  between(after: number, upTo: number): readonly Data[] {
    return this.publications.slice(Math.max(0, after), upTo)
  }

  /** The state of a client that subscribed at an offset, when the history was removed up to another. */
  stateFrom(offset: number, removedUpTo: number): string {
    const state = new State(this.isTimed)
    for (const data of this.between(Math.max(offset - HISTORY_SIZE, removedUpTo), this.top)) state.apply(data)
    return String(state)
  }

  othersAfter(offset: number): string {
    return JSON.stringify(this.between(offset, this.top).filter((data) => 'other' in data))
  }
}

const dataOf = ({ data }: PublicationContext): Data =>
  data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data

/** An official client with one subscription, and the application behind it. */
class ModelClient {
  readonly #client: Centrifuge
  readonly #subscription: Subscription
  readonly #model: Model
  #state: State
  /** Publications of another shape, by offset. */
  #others = new Map<number, Data>()
  /** Position of the last subscribe reply without recovery, and what had been removed from the history by then. */
  #start = 0
  #removedUpTo = 0
  #last = 0
  #mayHaveSnapshot = false
  /** For the message of a failure. */
  readonly #events: string[] = []
  isSubscribed = false
  errors: string[] = []

  constructor(client: Centrifuge, channel: string, maxRate: number | null, isProtobuf: boolean, model: Model) {
    this.#client = client
    this.#model = model
    this.#state = new State(model.isTimed)
    const request = JSON.stringify({ max_rate: maxRate })
    const data = maxRate === null ? {} : { data: isProtobuf ? Buffer.from(request) : JSON.parse(request) }
    this.#subscription = client.newSubscription(channel, data)
    this.#subscription.on('subscribed', (context) => this.#subscribed(context))
    this.#subscription.on('publication', (publication) => this.#received(publication))
    this.#subscription.on('subscribing', ({ code, reason }) => {
      this.isSubscribed = false
      this.#events.push(`subscribing ${code} ${reason}`)
    })
    this.#subscription.on('error', ({ error }) => void this.#events.push(`error ${error.code}`))
    this.#subscription.subscribe()
  }

  connect(): void {
    this.#client.connect()
  }

  disconnect(): void {
    this.#events.push('disconnect')
    this.#client.disconnect()
    this.isSubscribed = false
  }

  /** Not while a subscribe command is running: the SDK would take its reply for that of the second command. */
  resubscribe(): void {
    if (!this.isSubscribed) return
    this.#events.push('resubscribe')
    this.#subscription.unsubscribe()
    this.isSubscribed = false
    this.#subscription.subscribe()
  }

  get events(): string {
    return this.#events.join(', ')
  }

  get isConnecting(): boolean {
    return this.#client.state !== 'disconnected'
  }

  get isUpToDate(): boolean {
    return this.isSubscribed && this.#last >= this.#model.top
  }

  #subscribed({ recovered, streamPosition }: SubscribedContext): void {
    this.isSubscribed = true
    this.#events.push(`subscribed at ${streamPosition?.offset}${recovered ? ' with recovery' : ''}`)
    // The protobuf client has 64-bit integers as objects.
    const offset = Number(streamPosition?.offset ?? 0)
    if (recovered) {
      // Pushes that arrived after the SDK had sent its position are repeated.
      this.#last = offset
      return
    }
    this.#state = new State(this.#model.isTimed)
    this.#others = new Map()
    this.#start = offset
    this.#removedUpTo = this.#model.removedUpTo
    this.#last = offset
    this.#mayHaveSnapshot = true
  }

  #received(publication: PublicationContext): void {
    const offset = Number(publication.offset ?? 0)
    const data = dataOf(publication)
    this.#events.push(`received ${offset}`)
    const isSnapshot = this.#mayHaveSnapshot && offset === this.#last
    this.#mayHaveSnapshot = false
    if (!isSnapshot && offset <= this.#last) this.errors.push(`offset ${offset} after ${this.#last}`)
    if (isSnapshot && !('data' in data)) this.errors.push('a snapshot without a list')
    this.#last = offset
    this.#state.apply(data)
    if ('other' in data) this.#others.set(offset, data)
  }

  /** Null if the client has the state of the model. */
  difference(): string | null {
    if (this.errors.length > 0) return `${this.errors.join(', ')} (${this.events})`
    const expected = this.#model.stateFrom(this.#start, this.#removedUpTo)
    if (String(this.#state) !== expected) return `state ${this.#state} instead of ${expected}`
    const others = this.#model.othersAfter(this.#start)
    const received = JSON.stringify([...this.#others.values()])
    return received === others ? null : `others ${received} instead of ${others}`
  }

  close(): void {
    this.#client.disconnect()
  }
}

let channels = 0

/** Null if all clients agree with the model, else a description of the difference. */
const run = async (t: Test, world: World, { namespace, rates, steps }: Interleaving): Promise<string | null> => {
  const channel = `${namespace}:${++channels}`
  const model = new Model(namespace === 'timed')
  const clients = rates.map((rate, index) => {
    const port = world.ports[index % world.ports.length] ?? 0
    const isProtobuf = index % 2 === 1
    const create = isProtobuf ? officialProtobufClient : officialClient
    return new ModelClient(create(t, { port }, 'websocket'), channel, rate, isProtobuf, model)
  })
  const publish = async (data: Data): Promise<void> => {
    model.publications.push(data)
    const offset = await world.publish(channel, data)
    if (offset !== model.top) throw new Error(`offset ${offset} instead of ${model.top}`)
  }
  const upToDate = (): Promise<unknown> =>
    eventually(() => {
      const late = clients.find((client) => client.isConnecting && !client.isUpToDate)
      if (late !== undefined)
        throw new Error(`${channel} at ${model.top}: ${late.events} after ${JSON.stringify(steps)}`)
      return true
    })
  let n = 0
  for (const step of steps) {
    if (step.kind === 'publish') await publish({ data: step.entries.map(({ id, at }) => ({ id, at, n: ++n })) })
    else if (step.kind === 'publishOther') await publish({ other: ++n })
    else if (step.kind === 'removeHistory') {
      await upToDate()
      await world.removeHistory(channel)
      model.removedUpTo = model.top
    } else clients[step.client]?.[step.kind]()
  }
  for (const client of clients) client.connect()
  await publish({ data: [{ id: 1, at: 10, n: ++n }] })
  await upToDate()
  const differences = clients.map((client) => client.difference())
  for (const client of clients) client.close()
  return differences.find((each) => each !== null) ?? null
}

const runAll = (t: Test, world: World, runs: number): Promise<void> =>
  runModel(t, interleavings(world.rates), { runs: runs * environment.modelFactor, parallel: 20 }, (each) =>
    run(t, world, each)
  )

const ALL_RATES = [null, null, 10, 5, 2, 1, 0.5, 0.2]

const worldOf = (edges: readonly EdgeRelay[]): World => {
  let calls = 0
  const next = (): EdgeRelay => edges[++calls % edges.length] as EdgeRelay
  return {
    ports: edges.map(({ port }) => port),
    rates: ALL_RATES,
    publish: async (channel, data) => {
      const published = await next().relay.publish(channel, { ...PLAIN_PUBLICATION, data: JSON.stringify(data) })
      return 'offset' in published ? published.offset : 0
    },
    removeHistory: (channel) => next().relay.removeHistory(channel)
  }
}

t.test('random interleavings at a relay in one process agree with the model', async (t) => {
  await runAll(t, worldOf([await startRelay(t, NAMESPACES, {}, FAST_TIMERS)]), 60)
})

t.test('random interleavings at two relays on one Redis agree with the model', async (t) => {
  const { url } = await startRedis(t)
  const start = () => startRelay(t, NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url }, FAST_TIMERS)
  await runAll(t, worldOf([await start(), await start()]), 30)
})

t.test('random interleavings at two workers agree with the model', async (t) => {
  const workers = await startWorkers(t, 2, NAMESPACES)
  const world: World = {
    ports: [workers.port],
    rates: [null, null, 10],
    publish: async (channel, data) => (await workers.publish(channel, data)).offset,
    removeHistory: (channel) => workers.api('history_remove', { channel })
  }
  await runAll(t, world, 30)
})
