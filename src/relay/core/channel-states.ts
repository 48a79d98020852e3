import type { ChannelState } from './options.js'

/** A channel received its first subscriber, or has been without subscribers for some time. */
export interface ChannelStateEvent {
  /** The same each time the event is taken. */
  readonly id: string
  readonly channel: string
  readonly type: ChannelState
  /** Wall-clock time. */
  readonly timeMs: number
}

export interface ChannelStateRules {
  /** The names of all proxies that receive events. */
  readonly proxies: ReadonlySet<string>
  /** The proxy that receives the events of a channel; null if the channel has none. */
  proxyOf(channel: string): string | null
  /** How long a channel must be without subscribers before it counts as vacated. */
  readonly vacatedDelayMs: number
}

export interface TakenStateEvents {
  readonly events: readonly ChannelStateEvent[]
  /** Time until the next event may be due; infinite if none is known. */
  readonly nextMs: number
}

/**
 * Events about channels that become occupied or vacated, according to the presence of all nodes together.
 *
 * - The types of the events of a channel alternate. The next event exists once the last one has been confirmed.
 * - An event is taken by one caller. It is due again, with the same id, after it was released or its lease has ended.
 * - A change that is undone before its event was first taken leaves no event, so there is at most one event per channel.
 */
export interface ChannelStates {
  /** Null if no channel has events. Applies to existing subscriptions too. */
  configure(rules: ChannelStateRules | null): void
  /** Takes up to `limit` events of the proxy that are due. */
  take(proxy: string, limit: number, leaseMs: number): Promise<TakenStateEvents>
  /** The backend has received the events. */
  confirm(proxy: string, events: readonly ChannelStateEvent[]): Promise<void>
  /** The backend has not accepted the events; they are due again. */
  release(proxy: string, events: readonly ChannelStateEvent[]): Promise<void>
  /** Number of events of the proxy that are due and not taken. With Redis also channels that are due to be checked again. */
  countDue(proxy: string): Promise<number>
  /** `listener` is called if an event of the proxy may be due before the `nextMs` that `take` returned. */
  onDue(listener: (proxy: string) => void): void
}
