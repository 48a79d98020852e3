import { once } from 'node:events'
import type { Server } from 'node:net'
import { join } from 'node:path'
import {
  Centrifuge,
  type Options,
  type PublicationContext,
  type Subscription,
  type SubscriptionOptions
} from 'centrifuge'
import { Centrifuge as ProtobufCentrifuge } from 'centrifuge/build/protobuf'
import { ROOT } from '../../scripts/lib/root.js'
import { buildRelayApp, type RelayAppDependencies, type RunningRelay } from '../../src/relay/app.js'
import type { Relay } from '../../src/relay/core/relay.js'
import { createLogger } from '../../src/shared/logger.js'
import { portOf } from './address.js'
import type { Teardown } from './child.js'
import { EventSource } from './event-source.js'
import { type HttpResponse, type Message, send } from './http.js'
import { MutedOnCloseWebSocket } from './muted-on-close-websocket.js'
import { observedFetch } from './observed-fetch.js'
import { API_KEY, type ConfigFile, configOf, relayToken } from './relay-rules.js'

export interface EdgeRelay {
  readonly relay: Relay
  readonly running: RunningRelay
  readonly url: string
  readonly port: number
  /** Address of the internal listener; '' without one. */
  readonly internalUrl: string
  /** Advances the relay's clock and runs its periodic checks. */
  advance(ms: number): void
  /** Sets the system clock forward or back; the monotonic clock does not change. */
  step(ms: number): void
  /** A publish API call with the valid key. */
  api(method: string, request: unknown, message?: Message): Promise<HttpResponse>
  publish(channel: string, data: unknown): Promise<{ readonly offset: number; readonly epoch: string }>
}

const listen = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return portOf(server)
}

/** A listening relay. It uses the machine's clock until the test advances it. */
export const startRelay = async (
  t: Teardown,
  file?: ConfigFile,
  env: Record<string, string> = {},
  parts: Partial<RelayAppDependencies> = {}
): Promise<EdgeRelay> => {
  const config = configOf(file, env)
  let shiftMs = 0
  let stepMs = 0
  const running = await buildRelayApp(config, {
    log: createLogger({ name: 'relay', level: 'silent' }),
    version: 'test',
    adminPage: join(ROOT, 'dist/relay-admin'),
    nowMs: () => Date.now() + shiftMs + stepMs,
    monotonicMs: () => performance.now() + shiftMs,
    ...parts
  })
  const { server, internalServer, relay } = running
  const port = await listen(server)
  const internalUrl = internalServer === null ? '' : `http://127.0.0.1:${await listen(internalServer)}`
  t.teardown(async () => {
    running.closeConnections()
    await running.close()
  })
  const url = `http://127.0.0.1:${port}`
  const api = (method: string, request: unknown, message: Message = {}): Promise<HttpResponse> =>
    send(url, method === '' ? '/api' : `/api/${method}`, {
      method: 'POST',
      body: typeof request === 'string' ? request : JSON.stringify(request),
      ...message,
      headers: { 'x-api-key': API_KEY, ...message.headers }
    })
  return {
    relay,
    running,
    url,
    port,
    internalUrl,
    advance: (ms) => {
      shiftMs += ms
      relay.tick()
    },
    step: (ms) => {
      stepMs += ms
    },
    api,
    publish: async (channel, data) => JSON.parse((await api('publish', { channel, data })).body).result
  }
}

export const TRANSPORTS = ['websocket', 'http_stream', 'sse'] as const
export type TransportName = (typeof TRANSPORTS)[number]

/** The official client, over one of its transports. */
export const officialClient = (
  t: Teardown,
  { port }: Pick<EdgeRelay, 'port'>,
  transport: TransportName,
  options: Partial<Options> = {},
  Client: new (...args: ConstructorParameters<typeof Centrifuge>) => Centrifuge = Centrifuge
): Centrifuge => {
  const http = `http://127.0.0.1:${port}`
  const endpoint =
    transport === 'websocket' ? `ws://127.0.0.1:${port}/connection/websocket` : `${http}/connection/${transport}`
  const client = new Client([{ transport, endpoint }], {
    websocket: MutedOnCloseWebSocket,
    fetch: observedFetch,
    readableStream: ReadableStream,
    eventsource: EventSource,
    emulationEndpoint: `${http}/emulation`,
    minReconnectDelay: 1,
    maxReconnectDelay: 20,
    getToken: async () => relayToken({ sub: '42' }),
    ...options
  })
  t.teardown(() => client.disconnect())
  return client
}

/** The official client with protobuf. Its payloads are bytes. */
export const officialProtobufClient = (
  t: Teardown,
  edge: Pick<EdgeRelay, 'port'>,
  transport: TransportName,
  options: Partial<Options> = {}
): Centrifuge =>
  // The package declares the same class twice, with private properties that make the types incompatible.
  officialClient(t, edge, transport, options, ProtobufCentrifuge as unknown as typeof Centrifuge)

/** The next matching event of a client or subscription. */
export const event = <T = Record<string, unknown>>(
  from: Centrifuge | Subscription,
  name: string,
  matches: (value: T) => boolean = () => true
): Promise<T> =>
  new Promise((resolve) => {
    // The two classes declare overloads for each event name, which a variable name matches none of.
    const emitter = from as Record<'on' | 'off', (name: string, listener: (value: T) => void) => void>
    const listener = (value: T): void => {
      if (!matches(value)) return
      emitter.off(name, listener)
      resolve(value)
    }
    emitter.on(name, listener)
  })

/** Connects a client, and returns it. */
export const connectClient = async (client: Centrifuge): Promise<Centrifuge> => {
  const connected = event(client, 'connected')
  client.connect()
  await connected
  return client
}

/** A new subscription of this client that is subscribed. */
export const subscribeTo = async (
  client: Centrifuge,
  channel: string,
  options: Partial<SubscriptionOptions> = {}
): Promise<Subscription> => {
  const subscription = client.newSubscription(channel, options)
  const subscribed = event(subscription, 'subscribed')
  subscription.subscribe()
  await subscribed
  return subscription
}

/** Collects publications and waits for a number of them. */
export const collect = (subscription: Subscription) => {
  const publications: PublicationContext[] = []
  let check = (): void => undefined
  subscription.on('publication', (publication) => {
    publications.push(publication)
    check()
  })
  return {
    publications,
    get data() {
      return publications.map(({ data }) => data)
    },
    until: (isDone: (publications: readonly PublicationContext[]) => boolean): Promise<void> =>
      new Promise((resolve) => {
        check = () => {
          if (isDone(publications)) resolve()
        }
        check()
      })
  }
}
