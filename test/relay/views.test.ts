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

// Views with the official client: random moves of entries and views. Afterwards every client that drops what is outside its view
// has the entries that a model has there.

const OPTIONS = {
  allow_subscribe_for_client: true,
  history_size: 1000,
  history_ttl: '3600s',
  force_recovery: true,
  conflate: 'data[].id',
  snapshot: true,
  allow_max_rate: true,
  view_x: 'x',
  view_y: 'y',
  view_cell: 10
}

const NAMESPACES = {
  channel: {
    namespaces: [
      { name: 'timed', ...OPTIONS, entry_time: 'at' },
      { name: 'plain', ...OPTIONS }
    ]
  }
}

interface Rectangle {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

interface Entry {
  readonly id: number
  readonly at: number
  readonly x?: number
  readonly y?: number
  readonly n: number
}

interface Place {
  readonly x: number
  readonly y: number
}

const placeOf = ({ x, y }: Entry): Place | null => (x === undefined || y === undefined ? null : { x, y })

const contains = (view: Rectangle | null, place: Place | null): boolean =>
  view === null ||
  place === null ||
  (place.x >= view.x && place.x < view.x + view.w && place.y >= view.y && place.y < view.y + view.h)

/** The newest entry of every key, and its last place: of the channel, or of an application. */
class State {
  readonly #isTimed: boolean
  readonly #known = new Map<number, { readonly entry: Entry; readonly place: Place | null }>()

  constructor(isTimed: boolean) {
    this.#isTimed = isTimed
  }

  apply(entry: Entry): void {
    const known = this.#known.get(entry.id)
    if (this.#isTimed && known !== undefined && entry.at < known.entry.at) return
    this.#known.set(entry.id, { entry, place: placeOf(entry) ?? known?.place ?? null })
  }

  dropOutside(view: Rectangle | null): void {
    for (const [id, { place }] of this.#known) if (!contains(view, place)) this.#known.delete(id)
  }

  inside(view: Rectangle | null): string {
    const entries = [...this.#known.values()].filter(({ place }) => contains(view, place)).map(({ entry }) => entry)
    return JSON.stringify(entries.sort((one, other) => one.id - other.id))
  }
}

/** An entry without coordinates goes to every view. It is published last. */
const END = 0

/** An official client, and an application that shows what is in its view. */
class Viewer {
  readonly #client: Centrifuge
  readonly #subscription: Subscription
  readonly #encode: (data: object) => object
  readonly #isTimed: boolean
  readonly #maxRate: number | null
  #state: State
  #ended = false
  /** Null for everything. */
  view: Rectangle | null = null
  isSubscribed = false
  readonly problems: string[] = []

  constructor(client: Centrifuge, channel: string, { view, maxRate, isProtobuf }: ViewerOptions, isTimed: boolean) {
    this.#client = client
    this.#isTimed = isTimed
    this.#maxRate = maxRate
    this.#encode = (data) => (isProtobuf ? Buffer.from(JSON.stringify(data)) : data)
    this.#state = new State(isTimed)
    this.#subscription = client.newSubscription(channel, { data: this.#request(view) })
    this.#subscription.on('subscribed', (context) => this.#subscribed(context))
    this.#subscription.on('publication', (publication) => this.#received(publication))
    this.#subscription.on('subscribing', () => {
      this.isSubscribed = false
    })
    this.#subscription.on('error', ({ error }) => void this.problems.push(`error ${error.code}`))
    this.#subscription.subscribe()
  }

  #request(view: Rectangle): object {
    return this.#encode({ view, ...(this.#maxRate === null ? {} : { max_rate: this.#maxRate }) })
  }

  connect(): void {
    this.#client.connect()
  }

  disconnect(): void {
    this.#client.disconnect()
    this.isSubscribed = false
  }

  /** Not while a subscribe command is running: the SDK would take its reply for that of the second command. */
  move(view: Rectangle): void {
    if (!this.isSubscribed) return
    this.#subscription.setData(this.#request(view))
    this.#subscription.unsubscribe()
    this.isSubscribed = false
    this.#subscription.subscribe()
  }

  get isUpToDate(): boolean {
    return this.isSubscribed && this.#ended
  }

  #subscribed({ data, streamPosition, recoverable, positioned, recovered }: SubscribedContext): void {
    this.isSubscribed = true
    const reply = data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString() || '{}') : data
    this.view = (reply as { view?: Rectangle } | undefined)?.view ?? null
    if (recovered) this.problems.push('a recovery')
    this.#state = new State(this.#isTimed)
    this.#ended = false
    if (streamPosition !== undefined || recoverable || positioned) this.problems.push('a position')
  }

  #received({ data, offset }: PublicationContext): void {
    if (Number(offset ?? 0) > 0) this.problems.push(`offset ${offset}`)
    const { data: entries = [] } = (data instanceof Uint8Array ? JSON.parse(Buffer.from(data).toString()) : data) as {
      data?: readonly Entry[]
    }
    for (const entry of entries) {
      if (entry.id === END) this.#ended = true
      else this.#state.apply(entry)
    }
    this.#state.dropOutside(this.view)
  }

  get shown(): string {
    return this.#state.inside(this.view)
  }

  close(): void {
    this.#client.disconnect()
  }
}

interface ViewerOptions {
  readonly view: Rectangle
  readonly maxRate: number | null
  readonly isProtobuf: boolean
}

type Step =
  | { readonly kind: 'publish'; readonly entries: readonly Omit<Entry, 'n'>[] }
  | { readonly kind: 'publishOther' }
  | { readonly kind: 'connect' | 'disconnect'; readonly client: number }
  | { readonly kind: 'move'; readonly client: number; readonly view: Rectangle }

interface Interleaving {
  readonly isTimed: boolean
  readonly clients: readonly Omit<ViewerOptions, 'isProtobuf'>[]
  readonly steps: readonly Step[]
}

const CLIENTS = 4

const interleavings = (rates: readonly (number | null)[]): fc.Arbitrary<Interleaving> => {
  const client = fc.integer({ min: 0, max: CLIENTS - 1 })
  const coordinate = fc.integer({ min: -5, max: 34 })
  const size = fc.integer({ min: 1, max: 15 })
  const rectangle = fc.record({ x: coordinate, y: coordinate, w: size, h: size })
  // The larger one is not granted.
  const view = fc.oneof({ weight: 6, arbitrary: rectangle }, fc.constant({ x: -1000, y: 0, w: 2000, h: 10 }))
  const id = fc.integer({ min: 1, max: 5 })
  const at = fc.integer({ min: 0, max: 9 })
  const entry = fc.oneof(
    { weight: 6, arbitrary: fc.record({ id, at, x: coordinate, y: coordinate }) },
    fc.record({ id, at })
  )
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 10,
      arbitrary: fc.record({ kind: fc.constant('publish' as const), entries: fc.array(entry, { maxLength: 4 }) })
    },
    fc.record({ kind: fc.constant('publishOther' as const) }),
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('connect' as const), client }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('disconnect' as const), client }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('move' as const), client, view }) }
  )
  return fc.record({
    isTimed: fc.boolean(),
    clients: fc.array(fc.record({ view, maxRate: fc.constantFrom(...rates) }), {
      minLength: CLIENTS,
      maxLength: CLIENTS
    }),
    steps: fc.array(step, { minLength: 6, maxLength: 24, size: 'max' })
  })
}

/** A relay under test. */
interface World {
  readonly ports: readonly number[]
  readonly rates: readonly (number | null)[]
  publish(channel: string, data: object): Promise<unknown>
}

let channels = 0

/** Null if all clients agree with the model, else a description of the difference. */
const run = async (t: Test, world: World, { isTimed, clients, steps }: Interleaving): Promise<string | null> => {
  const channel = `${isTimed ? 'timed' : 'plain'}:${++channels}`
  const model = new State(isTimed)
  const viewers = clients.map((options, index) => {
    const port = world.ports[index % world.ports.length] ?? 0
    const isProtobuf = index % 2 === 1
    const create = isProtobuf ? officialProtobufClient : officialClient
    return new Viewer(create(t, { port }, 'websocket'), channel, { ...options, isProtobuf }, isTimed)
  })
  let n = 0
  const publish = async (entries: readonly Omit<Entry, 'n'>[]): Promise<void> => {
    const data = entries.map((entry) => ({ ...entry, n: ++n }))
    for (const entry of data) if (entry.id !== END) model.apply(entry)
    await world.publish(channel, { data })
  }
  for (const step of steps) {
    if (step.kind === 'publish') await publish(step.entries)
    else if (step.kind === 'publishOther') await world.publish(channel, { other: ++n })
    else if (step.kind === 'move') viewers[step.client]?.move(step.view)
    else viewers[step.client]?.[step.kind]()
  }
  for (const viewer of viewers) viewer.connect()
  await publish([{ id: END, at: 10 }])
  await eventually(() => {
    const late = viewers.findIndex((viewer) => !viewer.isUpToDate)
    if (late >= 0) throw new Error(`${channel}: client ${late} waits after ${JSON.stringify({ clients, steps })}`)
    return true
  })
  const differences = viewers.flatMap((viewer, index) => {
    const expected = model.inside(viewer.view)
    if (viewer.problems.length > 0) return [`client ${index}: ${viewer.problems.join(', ')}`]
    return viewer.shown === expected ? [] : [`client ${index} shows ${viewer.shown} instead of ${expected}`]
  })
  for (const viewer of viewers) viewer.close()
  return differences[0] ?? null
}

const runAll = (t: Test, world: World, runs: number): Promise<void> =>
  runModel(t, interleavings(world.rates), { runs: runs * environment.modelFactor, parallel: 10 }, (each) =>
    run(t, world, each)
  )

const worldOf = (edges: readonly EdgeRelay[]): World => {
  let calls = 0
  const next = (): EdgeRelay => edges[++calls % edges.length] as EdgeRelay
  return {
    ports: edges.map(({ port }) => port),
    rates: [null, null, 10, 5, 2, 1],
    publish: async (channel, data) =>
      next().relay.publish(channel, { ...PLAIN_PUBLICATION, data: JSON.stringify(data) })
  }
}

t.test('random interleavings with views at a relay in one process agree with the model', async (t) => {
  await runAll(t, worldOf([await startRelay(t, NAMESPACES, {}, FAST_TIMERS)]), 30)
})

t.test('random interleavings with views at two relays on one Redis agree with the model', async (t) => {
  const { url } = await startRedis(t)
  const start = () => startRelay(t, NAMESPACES, { RELAY_ENGINE: 'redis', REDIS_URL: url }, FAST_TIMERS)
  await runAll(t, worldOf([await start(), await start()]), 15)
})

t.test('random interleavings with views at two workers agree with the model', async (t) => {
  const workers = await startWorkers(t, 2, NAMESPACES)
  const world: World = {
    ports: [workers.port],
    rates: [null, null, 10],
    publish: (channel, data) => workers.publish(channel, data)
  }
  await runAll(t, world, 12)
})

t.test('the official client moves its view on the same connection', async (t) => {
  const edge = await startRelay(t, NAMESPACES)
  await edge.publish('plain:1', {
    data: [
      { id: 1, x: 5, y: 5 },
      { id: 2, x: 15, y: 5 }
    ]
  })
  const client = officialClient(t, edge, 'websocket')
  let connections = 0
  client.on('connected', () => connections++)
  const viewAt = (x: number): object => ({ view: { x, y: 0, w: 10, h: 10 } })
  const subscription = client.newSubscription('plain:1', { data: viewAt(0) })
  const events: unknown[] = []
  subscription.on('subscribed', ({ data }) => void events.push(data))
  subscription.on('publication', ({ data }) => void events.push(data))
  subscription.subscribe()
  client.connect()
  await eventually(() => events.length === 2)
  t.same(events.splice(0), [viewAt(0), { data: [{ id: 1, x: 5, y: 5 }] }])
  subscription.setData(viewAt(10))
  subscription.unsubscribe()
  subscription.subscribe()
  await eventually(() => events.length === 2)
  t.same(events.splice(0), [viewAt(10), { data: [{ id: 2, x: 15, y: 5 }] }])
  await edge.publish('plain:1', {
    data: [
      { id: 1, x: 6, y: 5 },
      { id: 2, x: 5, y: 5 }
    ]
  })
  await eventually(() => events.length === 1)

  t.same(events, [{ data: [{ id: 2, x: 5, y: 5 }] }], 'the entry that leaves')
  t.equal(connections, 1)
})
