import type { Method } from './protocol.js'

/** Numbers to add to, found once and kept by those who write to many. */
export interface Traffic {
  readonly messages: { value: number }
  readonly bytes: { value: number }
}

/** What a message to a client is; a reply has the name of its command. */
export type FrameType =
  | Method
  | 'server_ping'
  | 'push_publication'
  | 'push_join'
  | 'push_leave'
  | 'push_subscribe'
  | 'push_unsubscribe'
  | 'push_refresh'
  | 'push_disconnect'

/** What is asked of the engine, beside what else is told here. */
export type Action =
  | 'add_presence'
  | 'remove_presence'
  | 'presence'
  | 'presence_stats'
  | 'history'
  | 'history_recover'
  | 'history_recover_cache'
  | 'history_remove'

/** What an unexpected error ended: a client's connection, a delivery, work that nobody waited for, or an HTTP request. */
export type ErrorSource = 'connection' | 'delivery' | 'background' | 'http'

export type MessageType = 'publication' | 'join' | 'leave' | 'control'

/** Told what happens, to be counted. Every call must be cheap; those on the way of a publication most of all. */
export interface Watch {
  connected(transport: string, name: string, version: string): void
  /** Of a connection that was told to be connected before. */
  ended(transport: string, name: string, version: string): void
  /** The server ended a connection. */
  disconnected(transport: string, code: number): void
  subscribed(namespace: string, clientName: string): void
  unsubscribed(namespace: string, clientName: string): void
  /** The server ended a subscription. */
  serverUnsubscribed(namespace: string, code: number): void
  command(method: Method | 'pong', namespace: string, bytes: number, transport: string): void
  answered(method: Method, namespace: string, seconds: number): void
  refused(method: Method, namespace: string, code: number): void
  recovered(namespace: string, isRecovered: boolean, hasPublications: boolean): void
  ponged(transport: string, seconds: number): void
  published(namespace: string): void
  suppressed(namespace: string, reason: 'idempotency' | 'version'): void
  messageSent(type: MessageType, namespace: string): void
  delivered(type: MessageType, namespace: string, broadcastSeconds: number, lagSeconds: number): void
  conflated(namespace: string, publications: number): void
  acted(action: Action, namespace: string): void
  /** An error that nobody expected was caught, and ended nothing else. */
  unexpectedError(source: ErrorSource): void
  sent(transport: string, frameType: FrameType, namespace: string): Traffic
}

export const count = ({ messages, bytes }: Traffic, length: number): void => {
  messages.value += 1
  bytes.value += length
}

const nothing = (): void => undefined

export const NO_WATCH: Watch = {
  connected: nothing,
  ended: nothing,
  disconnected: nothing,
  subscribed: nothing,
  unsubscribed: nothing,
  serverUnsubscribed: nothing,
  command: nothing,
  answered: nothing,
  refused: nothing,
  recovered: nothing,
  ponged: nothing,
  published: nothing,
  suppressed: nothing,
  messageSent: nothing,
  delivered: nothing,
  conflated: nothing,
  acted: nothing,
  unexpectedError: nothing,
  sent: () => ({ messages: { value: 0 }, bytes: { value: 0 } })
}
