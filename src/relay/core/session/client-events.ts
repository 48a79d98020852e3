import { isObject } from '../../../shared/is-object.js'
import { canCarry, type DataMethod, type Encoded, payloadBytes } from '../codec/codec.js'
import { ERROR_BAD_REQUEST, ERROR_INTERNAL, ERROR_LIMIT_EXCEEDED, type ReplyError } from '../codes.js'
import type { ClientHeaders, EventData, EventSource, PendingCall } from '../event-proxies.js'
import type { Payload } from '../publication.js'
import type { Client } from './client.js'

/** The facts about a client in requests to a backend, and its calls under way. Only clients that need it have one. */
export class ClientEvents {
  /** JSON text that the backend or the token attached to the connection. */
  meta: string | null = null
  emulatedHeaders: ClientHeaders | null = null
  readonly #client: Client
  /** Null while no call is under way, because a set takes more memory than everything else here. */
  #calls: Set<PendingCall> | null = null

  constructor(client: Client) {
    this.#client = client
  }

  /** Asks the backend. The call ends when the client is closed, and the caller ignores its result then. */
  async ask<Outcome>(call: (source: EventSource) => Promise<Outcome>): Promise<Outcome> {
    this.#calls ??= new Set()
    try {
      return await call(this.#source(this.#calls))
    } finally {
      if (this.#calls?.size === 0) this.#calls = null
    }
  }

  /** The client has left. */
  abort(): void {
    for (const call of this.#calls ?? []) call.abort()
  }

  #source(calls: Set<PendingCall>): EventSource {
    const { id, user, transport, codec } = this.#client
    const { meta, emulatedHeaders } = this
    const { name, requestHeaders } = transport
    return { client: id, transport: name, protocol: codec.name, user, meta, requestHeaders, emulatedHeaders, calls }
  }
}

/** The data of a command, for the backend. Error 107 if it occurs twice: parsers disagree on which of two members counts. */
export const eventData = (
  { codec }: Client,
  command: Encoded,
  method: DataMethod,
  request: unknown
): EventData | ReplyError => {
  const data = codec.commandData(command, method, request)
  if (data !== null || !isObject(request) || request.data === undefined) return data
  // In protobuf, empty data and no data are the same.
  return Buffer.isBuffer(request.data) ? null : ERROR_BAD_REQUEST
}

/** Why the data of a backend cannot be in a reply: the client has no form for bytes, or not enough space in its queue. */
export const replyDataError = (client: Client, data: Payload | null): ReplyError | null => {
  if (data === null) return null
  if (!canCarry(client.codec, { data })) return ERROR_INTERNAL
  return payloadBytes(data) > client.replyBytesLeft ? ERROR_LIMIT_EXCEEDED : null
}

/** The headers of a connect command that some proxy forwards; null for none. */
export const forwardedHeaders = (
  headers: Readonly<Record<string, string>>,
  names: readonly string[]
): ClientHeaders | null => {
  if (names.length === 0) return null
  const forwarded = new Map<string, string[]>()
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase()
    if (!names.includes(key)) continue
    const values = forwarded.get(key)
    if (values === undefined) forwarded.set(key, [value])
    else values.push(value)
  }
  return forwarded.size === 0 ? null : Object.fromEntries(forwarded)
}
