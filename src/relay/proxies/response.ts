import { isUtf8 } from 'node:buffer'
import { jsonFromBytes, skipWhitespace } from '../core/codec/json.js'
import { LazyJsonObject } from '../core/codec/json-members.js'
import { type Disconnect, disconnectOfBackend, ERROR_INTERNAL, ReplyError } from '../core/codes.js'
import type {
  ConnectResult,
  MapPublishEventResult,
  MapRemoveEventResult,
  PublishEventResult,
  RefreshResult,
  RpcResult,
  SubscribeEventResult
} from '../core/event-proxies.js'
import { NO_OVERRIDE, type ServerSubscription } from '../core/options.js'
import type { Payload } from '../core/publication.js'
import { InvalidField, JsonFields } from '../json-fields.js'

/** The decision of a backend: an error or disconnect for the client, or a result; null if the response has none of them. */
export type Decision<Result> = Result | ReplyError | Disconnect | null

/**
 * Reads a response. All known fields are checked, also those that have no effect: a backend that sends a wrong type for one of
 * them does not mean what it says elsewhere. Throws `InvalidField`.
 */
export const readResponse = <Result>(body: Buffer, readResult: (fields: JsonFields) => Result): Decision<Result> => {
  const fields = responseFields(body)
  if (fields === null) return null
  const disconnect = fields.object('disconnect')
  const error = fields.object('error')
  const result = fields.object('result')
  const decisions = [
    disconnect === null ? null : readDisconnect(disconnect),
    error === null ? null : readError(error),
    result === null ? null : readResult(result)
  ]
  return decisions.find((decision) => decision !== null) ?? null
}

/** Null for the response `null`. */
const responseFields = (body: Buffer): JsonFields | null => {
  if (!isUtf8(body)) throw new InvalidField('the response', 'must be UTF-8')
  const start = skipWhitespace(body, 0)
  const object = LazyJsonObject.at(body, start)
  if (object !== null && skipWhitespace(body, object.end) === body.length) return new JsonFields(object)
  if (body.toString('latin1').trim() === 'null') return null
  throw new InvalidField('the response', 'must be a JSON object')
}

const MAX_CODE = 0xffff_ffff

const readError = (fields: JsonFields): ReplyError => {
  const [code, message, temporary] = [
    fields.integer('code', 0, MAX_CODE),
    fields.text('message'),
    fields.flag('temporary')
  ]
  return code === 0 ? ERROR_INTERNAL : new ReplyError(code, message, temporary)
}

const readDisconnect = (fields: JsonFields): Disconnect =>
  disconnectOfBackend(fields.integer('code', 0, MAX_CODE), fields.text('reason'))

/** A time before 1970 has passed, and 0 is none. */
const PAST = 1

const expiry = (fields: JsonFields): number => {
  const at = fields.integer('expire_at', Number.MIN_SAFE_INTEGER)
  return at < 0 ? PAST : at
}

/** JSON text; null if the field is missing or null. */
const optionalJson = (fields: JsonFields, field: 'info' | 'meta'): string | null => {
  const text = field === 'info' ? fields.json('info') : fields.jsonText('meta')
  return text === 'null' ? null : text
}

const payload = (fields: JsonFields): Payload | null => {
  const data = fields.payload('data')
  return typeof data === 'string' || data === null ? data : textOrBytes(data)
}

/** JSON clients receive bytes only if they are JSON, as text. */
const textOrBytes = (bytes: Buffer): Payload => jsonFromBytes(bytes) ?? bytes

const subscription = (fields: JsonFields): ServerSubscription => ({
  info: optionalJson(fields, 'info'),
  data: payload(fields),
  override: fields.override()
})

/** The channel may deliver its latest publication at once. */
const serverSubscription = (fields: JsonFields): ServerSubscription => {
  const options = subscription(fields)
  return fields.flag('cache_recover')
    ? { ...options, override: { ...options.override, autoCacheRecover: true } }
    : options
}

export const connectResult = (fields: JsonFields): ConnectResult => {
  const subscriptions = new Map<string, ServerSubscription>()
  for (const channel of fields.texts('channels')) subscriptions.set(channel, NO_OPTIONS)
  for (const [channel, options] of fields.objects('subs')) subscriptions.set(channel, serverSubscription(options))
  return {
    user: fields.text('user'),
    expiresAt: expiry(fields),
    info: optionalJson(fields, 'info'),
    data: payload(fields),
    meta: optionalJson(fields, 'meta'),
    subscriptions
  }
}

const NO_OPTIONS: ServerSubscription = { info: null, data: null, override: NO_OVERRIDE }

export const refreshResult = (fields: JsonFields): RefreshResult => ({
  isExpired: fields.flag('expired'),
  expiresAt: expiry(fields),
  info: optionalJson(fields, 'info') ?? undefined,
  meta: optionalJson(fields, 'meta') ?? undefined
})

export const subscribeResult = (fields: JsonFields): SubscribeEventResult => ({
  ...subscription(fields),
  expiresAt: expiry(fields)
})

/** Without a result, a subscription is allowed. */
export const ALLOWED_SUBSCRIPTION: SubscribeEventResult = { ...NO_OPTIONS, expiresAt: 0 }

/** Unlike elsewhere, `data` wins over `b64data`. */
const publishedFields = (fields: JsonFields) => {
  const bytes = fields.bytes('data')
  const data = fields.jsonText('data') ?? (bytes === null ? null : textOrBytes(bytes))
  return {
    ...(data !== null && { data }),
    tags: fields.tags(),
    idempotencyKey: fields.text('idempotency_key'),
    version: fields.integer('version', 0),
    versionEpoch: fields.text('version_epoch'),
    delta: fields.flag('delta')
  }
}

export const publishResult = (fields: JsonFields): PublishEventResult => ({
  ...publishedFields(fields),
  skipHistory: fields.flag('skip_history')
})

/** Without a key, that of the client stays. */
const chosenKey = (fields: JsonFields): { readonly key?: string } => {
  const key = fields.text('key')
  return key === '' ? {} : { key }
}

export const mapPublishResult = (fields: JsonFields): MapPublishEventResult => ({
  ...publishedFields(fields),
  ...chosenKey(fields),
  keyMode: fields.keyMode()
})

/** A removal has the tags of its entry. */
export const mapRemoveResult = (fields: JsonFields): MapRemoveEventResult => {
  fields.tags()
  return { ...chosenKey(fields), idempotencyKey: fields.text('idempotency_key') }
}

export const rpcResult = (fields: JsonFields): RpcResult => ({ data: payload(fields) })
