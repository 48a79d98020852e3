import type { Method } from './protocol.js'

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
  command(method: Method | 'pong', namespace: string, bytes: number): void
  refused(method: Method, namespace: string, code: number): void
  recovered(namespace: string, isRecovered: boolean, hasPublications: boolean): void
  published(namespace: string): void
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
  refused: nothing,
  recovered: nothing,
  published: nothing
}
