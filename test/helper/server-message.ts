/**
 * A reply or a push of the relay, parsed from JSON. Tests read the fields that they expect; assertions find a missing one.
 */
export interface ServerMessage {
  readonly id?: number
  readonly error?: { readonly code: number; readonly message: string; readonly temporary?: boolean }
  readonly connect?: ConnectResult
  readonly subscribe?: SubscribeResult
  readonly history?: HistoryResult
  readonly push?: ServerPush
  readonly [field: string]: unknown
}

export interface ConnectResult {
  readonly client?: string
  readonly session?: string
  readonly node?: string
  readonly ttl?: number
  readonly subs?: Readonly<Record<string, SubscribeResult>>
  readonly [field: string]: unknown
}

export interface SubscribeResult {
  readonly offset?: number
  readonly epoch?: string
  readonly recovered?: boolean
  readonly was_recovering?: boolean
  readonly publications?: readonly ServerPublication[]
  readonly [field: string]: unknown
}

export interface HistoryResult {
  readonly offset?: number
  readonly epoch?: string
  readonly publications?: readonly ServerPublication[]
}

export interface ServerPush {
  readonly channel?: string
  readonly pub?: ServerPublication
  readonly [kind: string]: unknown
}

export interface ServerPublication {
  readonly data?: unknown
  readonly offset?: number
  readonly delta?: boolean
  readonly [field: string]: unknown
}
