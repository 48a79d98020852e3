// What the operators' page and the relay say to each other; types only, so that the page can import them.
//
//   POST /admin/api/sign-in      SignIn          204 and the session cookie; 401; 429 with Retry-After
//   POST /admin/api/sign-out                     204
//   GET  /admin/api/session                      Session, or 401
//   GET  /admin/api/live?channel=                server-sent events, see LiveEvents; `channel` adds its publications
//   GET  /admin/api/channels?search=&sort=&order=&page=&size=      Page<ChannelRow>
//   GET  /admin/api/channel?name=                ChannelDetail
//   GET  /admin/api/connections?search=&sort=&order=&page=&size=   Page<ConnectionRow>
//   GET  /admin/api/config                       ActiveConfig
//   POST /admin/api/publish      TestPublish     TestPublished, or Problem
//   POST /admin/api/disconnect   DisconnectRequest 204
//
// Everything that changes something carries the session's token in `X-Admin-CSRF`, and a body has the type
// `application/json`. What is refused is a `Problem`: 401 without a session, 403 without the token, 404, 405, 413, 415.
//
// Pages count from 0; `size` is 50 where it is not given, and 100 at most; `order` is `asc` or `desc`. Without `sort` channels
// come by name and connections by user. A search finds parts of names in any letter case. `data` of
// server-sent events is JSON.
//
// What the page asks for by itself, such as a list that refreshes, carries `X-Admin-Refresh: 1`: it keeps nobody signed in.

export interface SignIn {
  readonly password: string
}

export interface Session {
  readonly csrf: string
  readonly version: string
  /** Signed out when nothing was asked for so long; the live stream does not count. */
  readonly idleMs: number
}

export interface Problem {
  readonly error: { readonly code: string; readonly message: string }
}

/** One second of one node. */
export interface Figures {
  readonly connections: number
  readonly subscriptions: number
  readonly channels: number
  readonly publishesPerSecond: number
  readonly deliveriesPerSecond: number
  readonly bytesPerSecond: number
  /** Bytes that wait for readers. */
  readonly queuedBytes: number
  readonly slowReaders: number
  readonly conflatedReaders: number
  readonly eventLoopDelayMs: number
  readonly memoryBytes: number
}

export interface NodeFigures extends Figures {
  readonly node: string
  /** `relay`, or `relay worker 2`, or with Redis `relay at some-host 3f2a`. */
  readonly name: string
}

export interface Frame {
  /** In milliseconds since 1970. */
  readonly time: number
  /** In no certain order; a node that did not answer in time is missing. */
  readonly nodes: readonly NodeFigures[]
}

export type CheckState = 'green' | 'amber' | 'red'

export interface Check {
  readonly id: string
  readonly title: string
  readonly state: CheckState
  /** One sentence: what was seen, and what to do where it is not green. */
  readonly sentence: string
  /** What was seen in detail: refused origins with their counts, reasons of failed tokens. */
  readonly details: readonly { readonly what: string; readonly count: number }[]
}

export interface LivePublication {
  readonly channel: string
  readonly time: number
  readonly offset: number
  /** JSON text, cut where it is long. */
  readonly data: string
  readonly isCut: boolean
}

export interface LiveEvents {
  /** First: what is known of the last 15 minutes. */
  readonly history: readonly Frame[]
  readonly frame: Frame
  readonly checks: readonly Check[]
  readonly publication: LivePublication
  /** The session has ended. */
  readonly end: null
}

export interface Page<Row> {
  readonly rows: readonly Row[]
  /** How many there are on all pages. */
  readonly total: number
  readonly page: number
  readonly size: number
}

export interface ChannelRow {
  readonly name: string
  readonly subscribers: number
  readonly publishesPerSecond: number
  /** In milliseconds since 1970; null before the first. */
  readonly lastPublish: number | null
  /** Null where the namespace keeps none. */
  readonly historyLength: number | null
}

export type ChannelSort = 'name' | 'subscribers' | 'publishesPerSecond' | 'lastPublish' | 'historyLength'

export interface ChannelDetail extends ChannelRow {
  readonly namespace: string
  /** The schema that publications must fit. */
  readonly schema: string | null
  readonly publications: readonly LivePublication[]
  /** Null where the namespace does not keep it. */
  readonly presence: readonly { readonly client: string; readonly user: string }[] | null
}

export interface ConnectionRow {
  readonly client: string
  readonly user: string
  readonly address: string
  readonly transport: string
  readonly node: string
  /** In milliseconds since 1970. */
  readonly since: number
  readonly channels: number
  /** Bytes that wait for it. */
  readonly queuedBytes: number
  readonly isBehind: boolean
}

export type ConnectionSort = 'user' | 'address' | 'since' | 'transport' | 'queuedBytes'

export interface TestPublish {
  readonly channel: string
  readonly data: unknown
}

export interface TestPublished {
  readonly offset: number
  readonly epoch: string
}

export interface DisconnectRequest {
  readonly user: string
  /** '' for all of the user's. */
  readonly client: string
}

export interface ActiveConfig {
  /** Secrets are shown as `(hidden)`. */
  readonly config: unknown
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly reloadedAt: number | null
}
