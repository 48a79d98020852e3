import fc from 'fast-check'
import type { Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { type ClientKind, MapClient, stateText, type Tag, type Value, VIEW_OPTIONS, valueWith } from './map-client.js'

// Random writes, removals, expiries, cuts and recoveries with the official client. Afterwards, and at checkpoints, every client has
// the state that a model computes from the writes.

/** Short, so that keys expire while clients load and recover. */
const BRIEF_TTL_MS = 400

const OPTIONS = {
  subscription_type: 'map',
  allow_subscribe_for_client: true,
  allowed_delta_types: ['fossil'],
  delta_publish: true,
  allow_tags_filter: true,
  ...VIEW_OPTIONS
}

/** Few entries per page and few stored changes, so that clients load in many steps and sometimes cannot recover. */
const PAGES = {
  min_page_size: 1,
  default_page_size: 2,
  max_page_size: 4,
  allow_publish_for_client: true,
  allow_remove_for_client: true
}
const STREAM = { stream_size: 6, stream_ttl: '1h', live_transition_max_publication_limit: 3 }

const MAPS = {
  persistent: { mode: 'persistent', ...STREAM },
  recoverable: { mode: 'recoverable', key_ttl: '1h', ...STREAM },
  ephemeral: { mode: 'ephemeral', key_ttl: '1h' },
  brief: { mode: 'recoverable', key_ttl: `${BRIEF_TTL_MS}ms`, ...STREAM },
  fleeting: { mode: 'ephemeral', key_ttl: `${BRIEF_TTL_MS}ms` }
}

type Namespace = keyof typeof MAPS

const NAMESPACES: readonly Namespace[] = ['persistent', 'recoverable', 'ephemeral', 'brief', 'fleeting']

const isBrief = (namespace: Namespace): boolean => namespace === 'brief' || namespace === 'fleeting'

export const MAP_NAMESPACES = {
  channel: { namespaces: NAMESPACES.map((name) => ({ name, ...OPTIONS, map: { ...MAPS[name], ...PAGES } })) }
}

/** A relay under test, of one or more processes. */
export interface World {
  readonly ports: readonly number[]
  /** The result of a call of the publish API. */
  api<Result>(method: string, params: unknown): Promise<Result>
}

interface Write {
  readonly kind: 'write'
  readonly key: string
  readonly tag: Tag | null
  readonly mode: 'if_new' | 'if_exists' | null
  readonly version: number
}

type Step =
  | Write
  | { readonly kind: 'remove'; readonly key: string }
  | { readonly kind: 'clientWrite' | 'clientRemove'; readonly client: number; readonly key: string }
  | { readonly kind: 'clear' }
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'connect' | 'disconnect' | 'resubscribe' | 'cut'; readonly client: number }

export interface Interleaving {
  readonly namespace: Namespace
  readonly clients: readonly ClientKind[]
  readonly steps: readonly Step[]
}

const CLIENTS = 3
const KEYS = ['a', 'b', 'c', 'd', 'e', 'é', '__proto__', 'z z']

const of = <T extends string>(kind: T): fc.Arbitrary<T> => fc.constant(kind)

export const interleavings = (length: { readonly min: number; readonly max: number }): fc.Arbitrary<Interleaving> => {
  const client = fc.nat(CLIENTS - 1)
  const key = fc.constantFrom(...KEYS)
  const write: fc.Arbitrary<Write> = fc.record({
    kind: of('write'),
    key,
    tag: fc.constantFrom('a', 'b', null),
    mode: fc.constantFrom(null, null, null, 'if_new', 'if_exists'),
    version: fc.constantFrom(0, 0, 0, 1, 2, 3)
  })
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 14, arbitrary: write },
    { weight: 4, arbitrary: fc.record({ kind: of('remove'), key }) },
    { weight: 2, arbitrary: fc.record({ kind: of('clientWrite'), client, key }) },
    { weight: 1, arbitrary: fc.record({ kind: of('clientRemove'), client, key }) },
    { weight: 1, arbitrary: fc.record({ kind: of('checkpoint') }) },
    { weight: 1, arbitrary: fc.record({ kind: of('clear') }) },
    { weight: 4, arbitrary: fc.record({ kind: of('connect'), client }) },
    { weight: 1, arbitrary: fc.record({ kind: of('disconnect'), client }) },
    { weight: 2, arbitrary: fc.record({ kind: of('resubscribe'), client }) },
    { weight: 3, arbitrary: fc.record({ kind: of('cut'), client }) }
  )
  const kind: fc.Arbitrary<ClientKind> = fc.record({
    isProtobuf: fc.boolean(),
    pageSize: fc.integer({ min: 0, max: 5 }),
    hasDelta: fc.boolean(),
    tag: fc.constant(null),
    view: fc.constant(null)
  })
  const filtering: fc.Arbitrary<ClientKind> = fc.record({
    isProtobuf: fc.boolean(),
    pageSize: fc.integer({ min: 0, max: 5 }),
    hasDelta: fc.constant(false),
    tag: fc.constantFrom('a', 'b'),
    view: fc.constant(null)
  })
  const side = fc.constantFrom(0, 10, 20)
  const size = fc.constantFrom(10, 20, 30)
  const viewing: fc.Arbitrary<ClientKind> = fc.record({
    isProtobuf: fc.boolean(),
    pageSize: fc.integer({ min: 0, max: 5 }),
    hasDelta: fc.boolean(),
    tag: fc.constant(null),
    view: fc.record({ x: side, y: side, w: size, h: size })
  })
  return fc.record({
    namespace: fc.constantFrom(...NAMESPACES),
    clients: fc.array(fc.oneof({ weight: 2, arbitrary: kind }, filtering, viewing), {
      minLength: CLIENTS,
      maxLength: CLIENTS
    }),
    steps: fc.array(step, { minLength: length.min, maxLength: length.max, size: 'max' })
  })
}

interface ModelEntry {
  readonly n: number
  readonly tag: Tag | null
  readonly version: number
  /** When the write began, on the monotonic clock. */
  readonly writtenAt: number
}

/** What a map must contain. */
class Model {
  readonly entries = new Map<string, ModelEntry>()

  /** Null if the write is not suppressed. */
  suppression({ key, mode, version }: Write): string | null {
    const known = this.entries.get(key)
    if (version > 0 && version <= (known?.version ?? 0)) return 'version'
    if (mode === 'if_new' && known !== undefined) return 'key_exists'
    return mode === 'if_exists' && known === undefined ? 'key_not_found' : null
  }

  write(key: string, n: number, tag: Tag | null, version: number): void {
    const kept = version > 0 ? version : (this.entries.get(key)?.version ?? 0)
    this.entries.set(key, { n, tag, version: kept, writtenAt: performance.now() })
  }

  /** The state of a client. */
  stateOf(client: MapClient): string {
    const { tag } = client.kind
    return this.#text(([, entry]) => (tag === null || entry.tag === tag) && client.isInView(entry.n))
  }

  /** The complete state. */
  get state(): string {
    return this.#text(() => true)
  }

  #text(matches: (entry: [string, ModelEntry]) => boolean): string {
    return stateText([...this.entries].filter(matches).map(([key, { n }]) => [key, n] as const))
  }
}

interface StoredEntry {
  readonly key: string
  readonly data: Value
}

interface Changed {
  readonly suppressed?: boolean
  readonly suppress_reason?: string
}

/** One run: a channel, its model and its clients. */
class Run {
  readonly #world: World
  readonly #channel: string
  readonly #namespace: Namespace
  readonly #model = new Model()
  readonly #clients: readonly MapClient[]
  #n = 0

  constructor(t: Test, world: World, channel: string, { namespace, clients }: Interleaving) {
    this.#world = world
    this.#channel = channel
    this.#namespace = namespace
    this.#clients = clients.map(
      (kind, index) => new MapClient(t, world.ports[index % world.ports.length] ?? 0, channel, kind)
    )
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#play(step)
    for (const client of this.#clients) client.connect()
    await this.#write({ kind: 'write', key: 'end', tag: 'a', mode: null, version: 0 })
    await this.#compare()
    if (!isBrief(this.#namespace)) return
    await eventually(async () => (await this.#stored()).size === 0)
    this.#model.entries.clear()
    await this.#compare()
  }

  close(): void {
    for (const client of this.#clients) client.disconnect()
  }

  async #play(step: Step): Promise<void> {
    if (step.kind === 'write') await this.#write(step)
    else if (step.kind === 'remove') await this.#remove(step.key)
    else if (step.kind === 'clear') await this.#clear()
    else if (step.kind === 'checkpoint') await this.#compare()
    else {
      const client = this.#clients[step.client]
      if (client === undefined) return
      if (step.kind === 'clientWrite') await this.#clientWrite(client, step.key)
      else if (step.kind === 'clientRemove') await this.#clientRemove(client, step.key)
      else await client[step.kind]()
    }
  }

  async #write(write: Write): Promise<void> {
    const { key, tag } = write
    const isPlain = isBrief(this.#namespace)
    const mode = isPlain ? null : write.mode
    // Ephemeral maps have no versions.
    const version = isPlain || this.#namespace === 'ephemeral' ? 0 : write.version
    const n = ++this.#n
    const expected = this.#model.suppression({ ...write, mode, version })
    if (expected === null) this.#model.write(key, n, tag, version)
    const result = await this.#world.api<Changed>('map_publish', {
      channel: this.#channel,
      key,
      data: valueWith(n),
      ...(tag !== null && { tags: { t: tag } }),
      ...(mode !== null && { key_mode: mode }),
      ...(version > 0 && { version })
    })
    const reason = result.suppressed === true ? result.suppress_reason : null
    if (reason !== expected) throw new Error(`${key}: suppressed by ${reason} instead of ${expected}`)
  }

  async #remove(key: string): Promise<void> {
    const isKnown = this.#model.entries.delete(key)
    const { suppressed } = await this.#world.api<Changed>('map_remove', { channel: this.#channel, key })
    // A brief key may have expired meanwhile.
    const isExpected = isKnown ? suppressed !== true || isBrief(this.#namespace) : suppressed === true
    if (!isExpected) throw new Error(`${key}: removal suppressed ${suppressed}, known ${isKnown}`)
  }

  /** Clients of ephemeral maps cannot notice it, because nothing is delivered and they have no position. */
  async #clear(): Promise<void> {
    if (this.#namespace === 'ephemeral' || this.#namespace === 'fleeting') return
    await this.#world.api('map_clear', { channel: this.#channel })
    this.#model.entries.clear()
    await this.#write({ kind: 'write', key: 'a', tag: 'a', mode: null, version: 0 })
  }

  async #clientWrite(client: MapClient, key: string): Promise<void> {
    if (!client.isConnected) return
    const n = ++this.#n
    this.#model.write(key, n, null, 0)
    await client.publish(key, valueWith(n))
  }

  async #clientRemove(client: MapClient, key: string): Promise<void> {
    if (!client.isConnected) return
    this.#model.entries.delete(key)
    await client.remove(key)
  }

  /** Waits until the relay and all clients agree with the model. */
  async #compare(): Promise<void> {
    await eventually(async () => {
      this.#forgetExpired(await this.#stored())
      const stored = stateText(await this.#stored())
      if (stored !== this.#model.state) throw new Error(`${stored} is stored instead of ${this.#model.state}`)
      for (const client of this.#clients) {
        if (!client.isConnected) continue
        const expected = this.#model.stateOf(client)
        if (client.state !== expected || !client.isSubscribed)
          throw new Error(`${JSON.stringify(client.kind)} has ${client.state} instead of ${expected}: ${client.events}`)
      }
      return true
    })
  }

  async #stored(): Promise<ReadonlyMap<string, number>> {
    const { entries = [] } = await this.#world.api<{ readonly entries?: readonly StoredEntry[] }>('map_read_state', {
      channel: this.#channel,
      limit: -1
    })
    return new Map(entries.map(({ key, data }) => [key, data.n]))
  }

  /** Removes brief keys from the model that are not stored any more, and not too early. */
  #forgetExpired(stored: ReadonlyMap<string, number>): void {
    if (!isBrief(this.#namespace)) return
    const now = performance.now()
    for (const [key, { writtenAt }] of this.#model.entries) {
      if (!stored.has(key) && now - writtenAt >= BRIEF_TTL_MS) this.#model.entries.delete(key)
    }
  }
}

let channels = 0

/** Null if all clients agree with the model, else a description of the difference. */
export const runInterleaving = async (t: Test, world: World, interleaving: Interleaving): Promise<string | null> => {
  const channel = `${interleaving.namespace}:${++channels}`
  const run = new Run(t, world, channel, interleaving)
  try {
    await run.play(interleaving.steps)
    return null
  } catch (error) {
    return `${channel}: ${error instanceof Error ? error.message : JSON.stringify(error)}`
  } finally {
    run.close()
  }
}
