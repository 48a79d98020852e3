/** The data of a publication: JSON text on one line, exactly as the publisher sent it, or bytes, which only protobuf clients receive. */
export type Payload = string | Buffer

/** A message on a channel. */
export interface Publication {
  readonly data: Payload
  /** Offset in the channel's stream, from 1; 0 without history. */
  readonly offset: number
  /** Client info of the publisher as JSON text; null for the API. */
  readonly info: string | null
  /** Tags as JSON text. */
  readonly tags: string | null
  /** Milliseconds since 1970. */
  readonly time: number
  /** Whether it may be sent as a delta to the previous publication. */
  readonly delta: boolean
  /** Version number of the publisher; 0 for none. */
  readonly version: number
  /** `traceparent` of the publisher's span. Absent if the publication is not traced. */
  readonly trace?: string
  /** Key of an entry of a map. Absent on a stream. */
  readonly key?: string
  /** The entry was removed. `data` is then `null`, and `tags` are those of the entry. Absent if it was written. */
  readonly removed?: true
  /** The entry that this change has replaced or removed. Only in deliveries of maps with `deliversPrevious`. */
  readonly previous?: PreviousEntry
}

/** The data of a removal. */
export const REMOVED_DATA = 'null'

/** The entry that a key of a map had before a change: the base of a delta. Filters and views may have matched it. */
export interface PreviousEntry {
  readonly data: Payload
  readonly tags: string | null
}

/** A position in a channel's stream. Offsets restart with each epoch. */
export interface Position {
  readonly epoch: string
  readonly offset: number
}

/** Position of a publication. */
export interface Published extends Position {
  /** Why it was not published: the idempotency key was used before, or the version is not newer. */
  readonly suppressedBy: 'idempotency' | 'version' | null
}

export const NO_POSITION: Position = { epoch: '', offset: 0 }

export interface NewPublication {
  readonly data: Payload
  readonly info: string | null
  readonly tags: string | null
  readonly delta: boolean
  readonly skipHistory: boolean
  /** A repeated key within five minutes is suppressed; '' for none. */
  readonly idempotencyKey: string
  /** Suppressed unless it is higher than the last one; 0 for none. */
  readonly version: number
  readonly versionEpoch: string
  /** `traceparent` of the publisher's span. Absent if the publication is not traced. */
  readonly trace?: string
}
