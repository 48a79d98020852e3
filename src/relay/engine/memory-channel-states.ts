import { randomUUID } from 'node:crypto'
import { type Clocks, wallTimeOf } from '../core/clocks.js'
import type { ChannelStateEvent, ChannelStateRules, ChannelStates, TakenStateEvents } from '../core/engine.js'
import type { ChannelState } from '../core/options.js'

/** A channel that has subscribers, or an event that was not confirmed. Times are on the monotonic clock. */
interface TrackedChannel {
  readonly name: string
  proxy: string
  /** The state of the last event, confirmed or not. */
  reported: ChannelState
  /** Since when the channel has the other state; null if it has the reported one. */
  changedAt: number | null
  /** The last event, until it is confirmed. */
  event: ChannelStateEvent | null
  leaseUntil: number
}

/** With many waiting channels, looking through them more often would cost too much. */
const MIN_SEARCH_INTERVAL_MS = 20

/** The channels of a proxy that have an event, now or later. */
class DueChannels {
  /** In the order in which they became due. */
  readonly ready = new Set<TrackedChannel>()
  readonly #waiting = new Map<TrackedChannel, number>()
  #nextSearchAt = Number.POSITIVE_INFINITY

  add(channel: TrackedChannel, dueAt: number, nowMs: number): void {
    if (dueAt <= nowMs) this.ready.add(channel)
    else {
      this.#waiting.set(channel, dueAt)
      this.#nextSearchAt = Math.min(this.#nextSearchAt, dueAt)
    }
  }

  delete(channel: TrackedChannel): void {
    this.ready.delete(channel)
    this.#waiting.delete(channel)
  }

  /** Moves channels that have become due to `ready`, and returns the time until the next one does. */
  collect(nowMs: number): number {
    if (nowMs >= this.#nextSearchAt) {
      let nextAt = Number.POSITIVE_INFINITY
      for (const [channel, dueAt] of this.#waiting) {
        if (dueAt > nowMs) nextAt = Math.min(nextAt, dueAt)
        else if (this.#waiting.delete(channel)) this.ready.add(channel)
      }
      this.#nextSearchAt = Math.max(nextAt, nowMs + MIN_SEARCH_INTERVAL_MS)
    }
    return this.#waiting.size === 0 ? Number.POSITIVE_INFINITY : this.#nextSearchAt - nowMs
  }
}

/** Channel states within one process. They end with the process, as presence does. */
export class MemoryChannelStates implements ChannelStates {
  readonly #clocks: Clocks
  readonly #occupiedChannels: () => Iterable<string>
  readonly #channels = new Map<string, TrackedChannel>()
  readonly #due = new Map<string, DueChannels>()
  #rules: ChannelStateRules | null = null
  #listener: (proxy: string) => void = () => undefined

  /** `occupiedChannels`: all channels with a client in their presence. */
  constructor(clocks: Clocks, occupiedChannels: () => Iterable<string>) {
    this.#clocks = clocks
    this.#occupiedChannels = occupiedChannels
  }

  /** Number of channels that use memory here. */
  get size(): number {
    return this.#channels.size
  }

  configure(rules: ChannelStateRules | null): void {
    this.#rules = rules
    this.#due.clear()
    for (const channel of this.#channels.values()) {
      const proxy = rules?.proxyOf(channel.name) ?? null
      if (proxy === null) this.#channels.delete(channel.name)
      else {
        channel.proxy = proxy
        this.#schedule(channel)
      }
    }
    if (rules !== null) for (const name of this.#occupiedChannels()) this.occupied(name)
  }

  /** The channel has a first client in its presence. */
  occupied(name: string): void {
    const channel = this.#channels.get(name) ?? this.#track(name)
    if (channel !== null) this.#setState(channel, 'occupied')
  }

  /** The channel has no client in its presence any more. */
  emptied(name: string): void {
    const channel = this.#channels.get(name)
    if (channel !== undefined) this.#setState(channel, 'vacated')
  }

  async take(proxy: string, limit: number, leaseMs: number): Promise<TakenStateEvents> {
    const due = this.#due.get(proxy)
    if (due === undefined) return { events: [], nextMs: Number.POSITIVE_INFINITY }
    const nowMs = this.#clocks.monotonicMs()
    due.collect(nowMs)
    const events: ChannelStateEvent[] = []
    for (const channel of due.ready) {
      if (events.length === limit) break
      channel.event ??= this.#newEvent(channel, nowMs)
      channel.leaseUntil = nowMs + leaseMs
      events.push(channel.event)
      this.#schedule(channel)
    }
    return { events, nextMs: due.ready.size > 0 ? 0 : due.collect(nowMs) }
  }

  async confirm(_: string, events: readonly ChannelStateEvent[]): Promise<void> {
    for (const channel of this.#channelsOf(events)) {
      channel.event = null
      this.#schedule(channel)
    }
  }

  async release(_: string, events: readonly ChannelStateEvent[]): Promise<void> {
    for (const channel of this.#channelsOf(events)) {
      channel.leaseUntil = 0
      this.#schedule(channel)
    }
  }

  async countDue(proxy: string): Promise<number> {
    const due = this.#due.get(proxy)
    due?.collect(this.#clocks.monotonicMs())
    return due?.ready.size ?? 0
  }

  onDue(listener: (proxy: string) => void): void {
    this.#listener = listener
  }

  /** An event that was confirmed meanwhile, after its lease had ended, has no channel. */
  *#channelsOf(events: readonly ChannelStateEvent[]): Iterable<TrackedChannel> {
    for (const { channel: name, id } of events) {
      const channel = this.#channels.get(name)
      if (channel?.event?.id === id) yield channel
    }
  }

  #track(name: string): TrackedChannel | null {
    const proxy = this.#rules?.proxyOf(name) ?? null
    if (proxy === null) return null
    const channel: TrackedChannel = {
      name,
      proxy,
      reported: 'vacated',
      changedAt: null,
      event: null,
      leaseUntil: 0
    }
    this.#channels.set(name, channel)
    return channel
  }

  #setState(channel: TrackedChannel, state: ChannelState): void {
    if (channel.reported === state) channel.changedAt = null
    else channel.changedAt ??= this.#clocks.monotonicMs()
    this.#schedule(channel)
  }

  /** Sets when the channel is next due. A vacated channel without an event is forgotten. */
  #schedule(channel: TrackedChannel): void {
    const due = this.#dueChannels(channel.proxy)
    due.delete(channel)
    const dueAt = this.#dueAt(channel)
    if (dueAt !== null) {
      const nowMs = this.#clocks.monotonicMs()
      due.add(channel, dueAt, nowMs)
      const isLeased = channel.event !== null && channel.leaseUntil > nowMs
      if (!isLeased) this.#listener(channel.proxy)
    } else if (channel.reported === 'vacated') this.#channels.delete(channel.name)
  }

  #dueAt({ event, leaseUntil, changedAt, reported }: TrackedChannel): number | null {
    if (event !== null) return leaseUntil
    if (changedAt === null) return null
    return reported === 'vacated' ? changedAt : changedAt + this.#vacatedDelayMs
  }

  /** Reports the change of a channel that is due. */
  #newEvent(channel: TrackedChannel, nowMs: number): ChannelStateEvent {
    const dueAt = this.#dueAt(channel) ?? nowMs
    channel.reported = channel.reported === 'vacated' ? 'occupied' : 'vacated'
    channel.changedAt = null
    const timeMs = wallTimeOf(dueAt, this.#clocks)
    return { id: randomUUID(), channel: channel.name, type: channel.reported, timeMs }
  }

  #dueChannels(proxy: string): DueChannels {
    const known = this.#due.get(proxy)
    if (known !== undefined) return known
    const due = new DueChannels()
    this.#due.set(proxy, due)
    return due
  }

  get #vacatedDelayMs(): number {
    return this.#rules?.vacatedDelayMs ?? 0
  }
}
