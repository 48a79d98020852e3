import { isDeepStrictEqual } from 'node:util'
import type { ProxyConfig, ProxyEvent } from '../config/proxy-selection.js'
import { Disconnect, ReplyError } from '../core/codes.js'
import type {
  ChannelDataEvent,
  ChannelEvent,
  ConnectEvent,
  ConnectResult,
  EventOutcome,
  EventProxies,
  EventSource,
  MapPublishEvent,
  MapPublishEventResult,
  MapRemoveEvent,
  MapRemoveEventResult,
  PublishEventResult,
  RefreshOutcome,
  RefreshResult,
  RpcEvent,
  RpcResult,
  SubscribeEventResult
} from '../core/event-proxies.js'
import { type CallOutcome, type EventFormat, EventProxy, FailedCall, type ProxyDependencies } from './event-proxy.js'
import type { ProxyStatus } from './health.js'
import {
  channelBody,
  channelDataBody,
  connectBody,
  mapPublishBody,
  mapRemoveBody,
  refreshBody,
  rpcBody
} from './request-body.js'
import {
  ALLOWED_SUBSCRIPTION,
  connectResult,
  mapPublishResult,
  mapRemoveResult,
  publishResult,
  refreshResult,
  rpcResult,
  subscribeResult
} from './response.js'

/** The name of the proxies that are not selected by name. */
const DEFAULT_NAME = 'default'

const CONNECT: EventFormat<ConnectEvent, ConnectResult> = {
  type: 'connect',
  body: connectBody,
  readResult: connectResult
}
const REFRESH: EventFormat<EventSource, RefreshResult> = {
  type: 'refresh',
  body: refreshBody,
  readResult: refreshResult
}
const SUBSCRIBE: EventFormat<ChannelDataEvent, SubscribeEventResult> = {
  type: 'subscribe',
  body: channelDataBody,
  readResult: subscribeResult
}
const SUB_REFRESH: EventFormat<ChannelEvent, RefreshResult> = {
  type: 'sub_refresh',
  body: channelBody,
  readResult: refreshResult
}
const PUBLISH: EventFormat<ChannelDataEvent, PublishEventResult> = {
  type: 'publish',
  body: channelDataBody,
  readResult: publishResult
}
const MAP_PUBLISH: EventFormat<MapPublishEvent, MapPublishEventResult> = {
  type: 'map_publish',
  body: mapPublishBody,
  readResult: mapPublishResult
}
const MAP_REMOVE: EventFormat<MapRemoveEvent, MapRemoveEventResult> = {
  type: 'map_remove',
  body: mapRemoveBody,
  readResult: mapRemoveResult
}
const RPC: EventFormat<RpcEvent, RpcResult> = { type: 'rpc', body: rpcBody, readResult: rpcResult }

/** Asks backends over HTTP: one POST for each event. */
export class HttpEventProxies implements EventProxies {
  readonly #dependencies: ProxyDependencies
  /** By id. */
  #proxies: ReadonlyMap<string, EventProxy> = new Map()
  #events: ProxyConfig['events']
  readonly #calls = new Set<Promise<unknown>>()
  requestHeaderNames: readonly string[] = []
  emulatedHeaderNames: readonly string[] = []

  constructor(config: ProxyConfig, dependencies: ProxyDependencies) {
    this.#dependencies = dependencies
    this.#events = config.events
    this.configure(config)
  }

  /** Unchanged proxies keep their connections. Calls under way end with the old proxies. */
  configure({ events, requestHeaders, emulatedHeaders }: ProxyConfig): void {
    const before = this.#proxies
    const proxies = new Map<string, EventProxy>()
    for (const options of Object.values(events).flatMap((byName) => [...byName.values()])) {
      const current = before.get(options.id)
      if (current !== undefined && isDeepStrictEqual(current.options, options)) proxies.set(options.id, current)
      // A named proxy may serve several events.
      else if (!proxies.has(options.id)) proxies.set(options.id, new EventProxy(options, this.#dependencies))
    }
    for (const [id, proxy] of before) if (proxies.get(id) !== proxy) proxy.close()
    this.#proxies = proxies
    this.#events = events
    this.requestHeaderNames = requestHeaders
    this.emulatedHeaderNames = emulatedHeaders
  }

  /** All proxies in use, with the events that they are asked about. */
  get statuses(): readonly ProxyStatus[] {
    return [...this.#proxies].map(([id, { status }]) => {
      const events = Object.entries(this.#events).filter(([, byName]) =>
        [...byName.values()].some((options) => options.id === id)
      )
      return { ...status, events: events.map(([event]) => event) }
    })
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0
  }

  /** Resolves when the calls that are under way now have ended. Each of them has a time limit. */
  async settled(): Promise<void> {
    await Promise.all(this.#calls)
  }

  /** Closes the connections as soon as they are idle. */
  close(): void {
    for (const proxy of this.#proxies.values()) proxy.close()
  }

  async connect(event: ConnectEvent): Promise<EventOutcome<ConnectResult | null>> {
    const outcome = await this.#call(CONNECT, DEFAULT_NAME, event)
    return outcome instanceof FailedCall ? outcome.reply : outcome
  }

  async refresh(event: EventSource): Promise<RefreshOutcome> {
    return refreshOutcome(await this.#call(REFRESH, DEFAULT_NAME, event))
  }

  async subscribe(proxy: string, event: ChannelDataEvent): Promise<EventOutcome<SubscribeEventResult>> {
    const outcome = await this.#call(SUBSCRIBE, proxy, event)
    return outcome instanceof FailedCall ? outcome.reply : (outcome ?? ALLOWED_SUBSCRIPTION)
  }

  async refreshSubscription(proxy: string, event: ChannelEvent): Promise<RefreshOutcome> {
    return refreshOutcome(await this.#call(SUB_REFRESH, proxy, event))
  }

  async publish(proxy: string, event: ChannelDataEvent): Promise<EventOutcome<PublishEventResult>> {
    const outcome = await this.#call(PUBLISH, proxy, event)
    return outcome instanceof FailedCall ? outcome.reply : (outcome ?? {})
  }

  async mapPublish(proxy: string, event: MapPublishEvent): Promise<EventOutcome<MapPublishEventResult>> {
    const outcome = await this.#call(MAP_PUBLISH, proxy, event)
    return outcome instanceof FailedCall ? outcome.reply : (outcome ?? {})
  }

  async mapRemove(proxy: string, event: MapRemoveEvent): Promise<EventOutcome<MapRemoveEventResult>> {
    const outcome = await this.#call(MAP_REMOVE, proxy, event)
    return outcome instanceof FailedCall ? outcome.reply : (outcome ?? {})
  }

  async rpc(proxy: string, event: RpcEvent): Promise<EventOutcome<RpcResult>> {
    const outcome = await this.#call(RPC, proxy, event)
    return outcome instanceof FailedCall ? outcome.reply : (outcome ?? { data: null })
  }

  /** Sends channel state events. Resolves with whether the backend has accepted them. */
  async sendStates(name: string, body: string): Promise<boolean> {
    const proxy = this.#find('state', name)
    return proxy !== undefined && this.#track(proxy.notify('state', body))
  }

  async #call<Event extends EventSource, Result>(
    format: EventFormat<Event, Result>,
    name: string,
    event: Event
  ): Promise<CallOutcome<Result>> {
    const proxy = this.#find(format.type, name)
    // A reload has removed the proxy since the core decided to ask it.
    if (proxy === undefined) return new FailedCall({ reason: 'no-proxy' })
    return this.#track(proxy.call(format, event))
  }

  #find(event: ProxyEvent, name: string): EventProxy | undefined {
    const options = this.#events[event].get(name)
    return options === undefined ? undefined : this.#proxies.get(options.id)
  }

  async #track<Outcome>(call: Promise<Outcome>): Promise<Outcome> {
    this.#calls.add(call)
    try {
      return await call
    } finally {
      this.#calls.delete(call)
    }
  }
}

/** The backend prolongs a connection or subscription with a result only. */
const refreshOutcome = (outcome: CallOutcome<RefreshResult>): RefreshOutcome => {
  if (outcome instanceof FailedCall) return 'unavailable'
  return outcome === null || outcome instanceof ReplyError || outcome instanceof Disconnect ? 'expired' : outcome
}
