import type { HistoryOptions } from './options.js'

/** One message on a channel, as it is kept and delivered. */
export interface Publication {
  /** JSON text on one line: the bytes that the publisher sent, never written anew. */
  readonly data: string
  /** Its place in the channel's stream, from 1; 0 where it is not kept. */
  readonly offset: number
  /** JSON text of the publishing client; null for the publish API. */
  readonly info: string | null
  /** JSON text of the publisher's tags. */
  readonly tags: string | null
  readonly time: number
  /** Whether it may be sent as the difference to the one before. */
  readonly delta: boolean
  /** As its publisher numbers what it publishes; 0 for none. */
  readonly version: number
}

/** A place in a channel's stream. A new epoch means that offsets began anew. */
export interface Position {
  readonly epoch: string
  readonly offset: number
}

/** Where a publication is. */
export interface Published extends Position {
  /** Why it was not made anew: an equal one, or a newer one, was there. */
  readonly suppressedBy: 'idempotency' | 'version' | null
}

export const NO_POSITION: Position = { epoch: '', offset: 0 }

export interface NewPublication {
  readonly data: string
  readonly info: string | null
  readonly tags: string | null
  readonly delta: boolean
  readonly skipHistory: boolean
  /** A second publication with the same key within five minutes is not made; '' for none. */
  readonly idempotencyKey: string
  /** One that is not above the last one is not made; 0 for none. */
  readonly version: number
  readonly versionEpoch: string
}

/** One of many channels that the same publication goes to. */
export interface PublishTarget {
  readonly channel: string
  readonly options: HistoryOptions
}

export type JoinOrLeave = 'join' | 'leave'

/** Where an engine hands over what arrives for this node's channels; in order per channel. */
export interface Delivery {
  publication(channel: string, publication: Publication, epoch: string): void
  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): void
  /** Something may have been published there that did not arrive here: the place is to be compared with the history. */
  mayHaveMissed(channel: string): void
  /** How far the streams of this node's channels have been delivered, for an engine that was restarted to be compared with. */
  positions(): Iterable<readonly [channel: string, position: Position]>
}

/** Carries publications between relay nodes, in order per channel. */
export interface Broker {
  /** Called once, before anything else. */
  start(delivery: Delivery): MaybePromise<void>
  /** Done when deliveries are certain to flow; only then is a client told "subscribed". */
  subscribe(channel: string): MaybePromise<void>
  unsubscribe(channel: string): MaybePromise<void>
  /** Whether deliveries of a subscribed channel flow now: false while the connection that carries them is down. */
  isDelivering(channel: string): boolean
  /** Where the publication now is, or where an equal one already was; `NO_POSITION` without history. */
  publish(channel: string, publication: NewPublication, options: HistoryOptions): MaybePromise<Published>
  /**
   * The same publication on many channels; an outcome for each, in their order. For engines in another process or on
   * another machine, so that the publication travels once. Never blocks the event loop for long.
   */
  publishToMany?(
    targets: readonly PublishTarget[],
    publication: NewPublication
  ): Promise<readonly (Published | EngineError)[]>
  joinOrLeave(channel: string, kind: JoinOrLeave, info: string): MaybePromise<void>
  close(): MaybePromise<void>
}

export interface HistoryRange {
  /** Where to go on from; null for the beginning, or the end when reading backwards. */
  readonly since: Position | null
  /** How many at most: 0 for none, below 0 for all. */
  readonly limit: number
  readonly reverse: boolean
}

export interface HistoryPage extends Position {
  readonly publications: readonly Publication[]
}

/** What was published lately. Asking about a channel gives it an epoch, so that a first subscriber knows its place. */
export interface History {
  read(channel: string, range: HistoryRange, options: HistoryOptions): MaybePromise<HistoryPage>
  remove(channel: string): MaybePromise<void>
}

/** Who listens, on all nodes. */
export interface Presence {
  /** `info` is JSON text. */
  add(channel: string, client: string, user: string, info: string): MaybePromise<void>
  remove(channel: string, client: string): MaybePromise<void>
  /** JSON text by client. */
  read(channel: string): MaybePromise<ReadonlyMap<string, string>>
  count(channel: string): MaybePromise<{ readonly clients: number; readonly users: number }>
}

/**
 * The engine could not do what it was asked for, and has said so wherever it says such things. Whoever asked is told to try
 * again later; nobody logs it a second time.
 */
export class EngineError extends Error {
  override readonly name: string = 'EngineError'
}

/**
 * What an engine may answer with: at once where it can, so that subscribing and publishing in memory cost no promise and
 * happen within one turn, or later where a network is in between.
 */
export type MaybePromise<T> = T | Promise<T>

export const after = <T, R>(value: MaybePromise<T>, next: (value: T) => R | Promise<R>): MaybePromise<R> =>
  value instanceof Promise ? value.then(next) : next(value)

type Settled<T> = PromiseSettledResult<T>

const fulfilled = <T>(value: T): Settled<T> => ({ status: 'fulfilled', value })
const rejected = (reason: unknown): PromiseRejectedResult => ({ status: 'rejected', reason })

const settle = <T>(work: () => MaybePromise<T>): MaybePromise<Settled<T>> => {
  try {
    const result = work()
    return result instanceof Promise ? result.then(fulfilled, rejected) : fulfilled(result)
  } catch (error) {
    return rejected(error)
  }
}

/**
 * Begins all of the work and waits for all of it, also where some of it fails: a promise that nobody waits for would end
 * the process when it rejects. Never fails itself.
 */
export const settleAll = <T>(work: readonly (() => MaybePromise<T>)[]): MaybePromise<readonly Settled<T>[]> => {
  const settling = work.map(settle)
  return settling.some((each) => each instanceof Promise) ? Promise.all(settling) : (settling as readonly Settled<T>[])
}
