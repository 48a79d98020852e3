import type { MapWrite } from '../../src/relay/core/engine.js'
import { PLAIN_WRITE } from '../../src/relay/core/maps/write-map.js'
import type { MapOptions } from '../../src/relay/core/options.js'
import type { RelayDependencies } from '../../src/relay/core/session/context.js'
import { coreRelay, type FakeClient, type Message, type TestRelay } from './relay-core.js'
import { configOf } from './relay-rules.js'
import { required } from './required.js'
import type { ServerMessage, ServerPublication, SubscribeResult } from './server-message.js'

export const CHANNEL = 'fleet:1'

export interface MapRelay extends TestRelay {
  readonly options: MapOptions
  write(key: string, data: unknown, more?: Partial<MapWrite>): void
  remove(key: string): void
  clear(): Promise<void>
  /** The entries of the map by key. */
  entries(): Promise<Readonly<Record<string, unknown>>>
}

/** Pages of two entries, and no pings while the clock advances. */
export const SMALL_PAGES = { default_page_size: 2, min_page_size: 1, max_page_size: 4 }

export const RECOVERABLE = { mode: 'recoverable', key_ttl: '60s', ...SMALL_PAGES }
export const EPHEMERAL = { mode: 'ephemeral', key_ttl: '60s', ...SMALL_PAGES }

/** A relay with the namespace `fleet` for maps. */
export const mapRelay = (
  map: Message = RECOVERABLE,
  more: Message = {},
  client: Message = {},
  parts: Partial<RelayDependencies> = {}
): MapRelay => {
  const file = {
    client: { ping_interval: '10000000s', ...client },
    channel: {
      namespaces: [
        { name: 'fleet', subscription_type: 'map', allow_subscribe_for_client: true, map, ...more },
        { name: 'chat', allow_subscribe_for_client: true }
      ]
    }
  }
  const options = required(configOf(file).channels.namespaces.get('fleet')?.map)
  const relay = coreRelay(file, parts)
  const { maps } = relay.engine
  return {
    ...relay,
    get delivery() {
      return relay.delivery
    },
    get pendingTimers() {
      return relay.pendingTimers
    },
    options,
    write: (key, data, more = {}) =>
      void maps.write(CHANNEL, { ...PLAIN_WRITE, delta: true, key, data: JSON.stringify(data), ...more }, options),
    remove: (key) => void maps.removeKey(CHANNEL, { key, idempotencyKey: '' }, options),
    clear: () => maps.clear(CHANNEL),
    entries: async () => {
      const { entries } = await maps.readState(CHANNEL, { after: '', limit: -1 }, options)
      return Object.fromEntries(entries.map(({ key = '', data }) => [key, JSON.parse(data.toString())]))
    }
  }
}

/** Sends a subscribe command for the map, and returns its result or the code of the error. */
export const subscribeMap = async (
  client: FakeClient,
  fields: Message = {},
  channel = CHANNEL
): Promise<SubscribeResult> => {
  const messages = await client.send({ id: 2, subscribe: { channel, type: 1, ...fields } })
  const [reply] = messages
  if (reply?.subscribe === undefined) throw new Error(`no result: ${JSON.stringify(messages)} ${client.closed}`)
  return reply.subscribe
}

/** Sends a subscribe command that is rejected, and returns the code, or the reason for closing the connection. */
export const rejectedMap = async (client: FakeClient, fields: Message = {}, channel = CHANNEL): Promise<unknown> => {
  const [reply] = await client.send({ id: 2, subscribe: { channel, type: 1, ...fields } })
  return client.closed ?? reply?.error?.code ?? reply
}

/** The entries of a client that applies what it receives, as the official client does. */
export class MapModel {
  readonly state = new Map<string, unknown>()

  apply(publications: readonly ServerPublication[] | undefined): void {
    for (const { key, data, removed } of publications ?? []) {
      if (removed) this.state.delete(String(key))
      else this.state.set(String(key), data)
    }
  }

  result({ state, publications }: SubscribeResult): void {
    this.apply(state as readonly ServerPublication[] | undefined)
    this.apply(publications)
  }

  pushes(messages: readonly ServerMessage[]): void {
    for (const { push } of messages) if (push?.pub !== undefined) this.apply([push.pub])
  }

  get entries(): Readonly<Record<string, unknown>> {
    return Object.fromEntries([...this.state].sort())
  }
}

/** Loads the map page by page until the client is live, and calls `between` after each page. */
export const loadMap = async (
  client: FakeClient,
  model: MapModel,
  between: (page: SubscribeResult) => unknown = () => undefined,
  fields: Message = {}
): Promise<SubscribeResult> => {
  let result = await subscribeMap(client, { phase: 2, ...fields })
  for (;;) {
    model.result(result)
    const { phase, cursor, offset, epoch } = result
    if (phase === undefined) return result
    await between(result)
    const position = { offset, epoch }
    result = await subscribeMap(
      client,
      phase === 2 && cursor !== undefined
        ? { phase: 2, cursor, ...position, ...fields }
        : { phase: 1, ...position, ...fields }
    )
  }
}
