import type { MapSuppression } from './engine.js'
import type { Method } from './protocol.js'

/** Counters that a sender looks up once and increments directly. */
export interface Traffic {
  readonly messages: { value: number }
  readonly bytes: { value: number }
}

/** Type of a message to a client; replies have the name of their command. */
export type FrameType =
  | Method
  | 'server_ping'
  | 'push_publication'
  | 'push_join'
  | 'push_leave'
  | 'push_subscribe'
  | 'push_unsubscribe'
  | 'push_refresh'
  | 'push_connect'
  | 'push_disconnect'

/** Engine actions that have no metric of their own. */
export type Action =
  | 'survey'
  | 'broker_subscribe'
  | 'broker_unsubscribe'
  | 'add_presence'
  | 'remove_presence'
  | 'presence'
  | 'presence_stats'
  | 'history'
  | 'history_recover'
  | 'history_recover_cache'
  | 'history_stream_top'
  | 'history_remove'
  | MapAction

export type MapAction =
  | 'map_broker_subscribe'
  | 'map_broker_unsubscribe'
  | 'map_publish'
  | 'map_remove'
  | 'map_state_read'
  | 'map_stream_read'
  | 'map_stats'
  | 'map_clear'

/** Where an unexpected error occurred. `background` is work that no client waits for. */
export type ErrorSource = 'connection' | 'delivery' | 'background' | 'http'

export type MessageType = 'publication' | 'join' | 'leave' | MapMessageType

export type MapMessageType = 'map_publication' | 'map_removal'

/** Counts events of the core. Calls must be cheap, above all those for each publication. */
export interface CoreMetrics {
  clientConnected(transport: string, name: string, version: string): void
  /** Only for connections that were counted as connected. */
  clientClosed(transport: string, name: string, version: string): void
  /** The relay closed a connection. */
  disconnected(transport: string, code: number): void
  /** `rate` is the limit of deliveries per second; null for none. */
  subscribed(namespace: string, clientName: string, rate: number | null): void
  unsubscribed(namespace: string, clientName: string, rate: number | null): void
  /** The relay ended a subscription. */
  serverUnsubscribed(namespace: string, code: number): void
  command(method: Method | 'pong', namespace: string, bytes: number, transport: string): void
  replied(method: Method, namespace: string, seconds: number): void
  replyError(method: Method, namespace: string, code: number): void
  recovered(namespace: string, isRecovered: boolean, publications: number): void
  pongReceived(transport: string, seconds: number): void
  published(namespace: string): void
  suppressed(namespace: string, reason: 'idempotency' | 'version'): void
  mapSuppressed(change: 'publish' | 'remove', namespace: string, reason: MapSuppression): void
  /** Keys of maps have expired; `lagSeconds` is the time from the oldest deadline to its removal. */
  mapKeysExpired(keys: number, lagSeconds: number): void
  mapExpiryFailed(): void
  messageSent(type: MessageType, namespace: string): void
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number | null): void
  conflated(namespace: string, publications: number): void
  /** Time from the newest entry of a publication to its delivery. */
  publicationAge(namespace: string, seconds: number): void
  /** A publication was not sent to these subscribers because of their tag filters. */
  filteredOut(namespace: string, subscribers: number): void
  /** A publication was not sent to these subscribers, because nothing of it is in their views. */
  outsideView(namespace: string, subscribers: number): void
  /** Subscribers are not notified of a join or leave, because too many wait in its channel. */
  joinOrLeaveDropped(namespace: string): void
  engineAction(action: Action, namespace: string): void
  /** An unexpected error was caught and affected nothing else. */
  unexpectedError(source: ErrorSource): void
  sent(transport: string, frameType: FrameType, namespace: string): Traffic
}

/** Counts one message of this size. */
export const count = ({ messages, bytes }: Traffic, size: number): void => {
  messages.value += 1
  bytes.value += size
}
