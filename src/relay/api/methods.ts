import { isObject } from '../../shared/is-object.js'
import {
  historyText,
  historyTextLength,
  objectText,
  positionFields,
  presenceEntryText,
  presenceStatsText,
  quote
} from '../core/codec/json-codec.js'
import {
  DISCONNECT_FORCED,
  Disconnect,
  ERROR_EMPTY_CHANNEL,
  ERROR_INTERNAL,
  ERROR_METHOD_NOT_FOUND,
  MAX_REASON_BYTES,
  ReplyError
} from '../core/codes.js'
import { EngineError } from '../core/engine.js'
import { after, type MaybePromise } from '../core/maybe-promise.js'
import type { UserSelector } from '../core/node-requests.js'
import { globTest } from '../core/nodes/glob.js'
import type { NewPublication, Position } from '../core/publication.js'
import type { Relay } from '../core/relay.js'
import { joinInSlices } from '../core/time-slice.js'
import { InvalidField, InvalidType, isSafeInteger } from '../json-fields.js'
import { MAP_METHODS } from './map-methods.js'
import { tracePublish } from './publish-span.js'
import { type ApiBudget, type ApiMethod, errorJson, RESPONSE_TOO_LARGE, resultJson } from './reply.js'
import type { ApiRequest } from './request.js'

/** Without data it is empty, which only binary namespaces accept. */
const publicationOf = (request: ApiRequest): NewPublication => ({
  data: request.payload('data'),
  info: null,
  tags: request.tags(),
  delta: request.flag('delta'),
  skipHistory: request.flag('skip_history'),
  idempotencyKey: request.text('idempotency_key'),
  version: request.integer('version', 0),
  versionEpoch: request.text('version_epoch')
})

const positionText = (position: Position): string => objectText(positionFields(position))

const publish: ApiMethod = (relay, request, { span }) => {
  const channel = request.requiredText('channel')
  const publication = publicationOf(request)
  return tracePublish(span, publication, channel, (traced) =>
    after(relay.publish(channel, traced), (outcome) =>
      outcome instanceof ReplyError ? outcome : positionText(outcome)
    )
  )
}

// Smaller broadcasts are published channel by channel in one turn, together with other publications of the request.
const MAX_SMALL_BROADCAST_CHANNELS = 64
const MAX_SMALL_BROADCAST_CHARACTERS = 256 * 1024

/** Every channel has its own result; a failed channel does not affect the others. */
const broadcast: ApiMethod = (relay, request, budget) => {
  const channels = request.texts('channels')
  if (channels.length === 0) throw new InvalidField('channels', 'is missing')
  const publication = publicationOf(request)
  return tracePublish(budget.span, publication, channels, (traced) => broadcastTo(relay, channels, traced, budget))
}

const broadcastTo = (
  relay: Relay,
  channels: readonly string[],
  publication: NewPublication,
  budget: ApiBudget
): MaybePromise<string> => {
  if (
    channels.length > MAX_SMALL_BROADCAST_CHANNELS ||
    channels.length * publication.data.length > MAX_SMALL_BROADCAST_CHARACTERS
  ) {
    const responses = broadcastToMany(relay, channels, publication, budget)
    // The barrier ignores errors: the caller of this method handles them.
    budget.barrier = responses.catch(() => undefined)
    return responses
  }
  const schemaCheck = relay.schemaCheck(publication)
  const textOf = (outcome: Position | ReplyError): string => outcomeJson(outcome, budget)
  const failed = (error: unknown): string => {
    if (!(error instanceof EngineError)) throw error
    return textOf(ERROR_INTERNAL)
  }
  const responses = channels.map((channel) => {
    if (channel === '') return textOf(ERROR_EMPTY_CHANNEL)
    const response = after(relay.publish(channel, publication, schemaCheck), textOf)
    return response instanceof Promise ? response.catch(failed) : response
  })
  const write = (texts: readonly string[]): string => `{"responses":[${texts.join(',')}]}`
  const areReady = (list: readonly (string | Promise<string>)[]): list is readonly string[] =>
    list.every((each) => typeof each === 'string')
  return areReady(responses) ? write(responses) : Promise.all(responses).then(write)
}

const outcomeJson = (outcome: Position | ReplyError, { metrics }: ApiBudget): string => {
  if (!(outcome instanceof ReplyError)) return resultJson(positionText(outcome))
  metrics.apiError('broadcast_publish', outcome.code)
  return errorJson(outcome)
}

const broadcastToMany = async (
  relay: Relay,
  channels: readonly string[],
  publication: NewPublication,
  budget: ApiBudget
): Promise<string> => {
  const { slices } = budget
  const outcomes = await relay.broadcast(channels, publication, slices)
  const texts = await joinInSlices(outcomes, (outcome) => outcomeJson(outcome, budget), slices)
  return `{"responses":[${texts}]}`
}

const target = (request: ApiRequest): UserSelector => ({
  user: request.text('user'),
  client: request.text('client'),
  session: request.text('session')
})

const subscribe: ApiMethod = async (relay, request) => {
  const subscription = {
    channel: request.requiredText('channel'),
    expiresAt: request.integer('expire_at', 0),
    info: request.json('info'),
    data: request.json('data'),
    override: request.override(),
    recover: request.position('recover_since')
  }
  return (await relay.subscribeUser({ target: target(request), subscription })) ?? '{}'
}

const unsubscribe: ApiMethod = async (relay, request) =>
  (await relay.unsubscribeUser({ channel: request.requiredText('channel'), target: target(request) })) ?? '{}'

/** The code and reason for the close frame, with defaults. */
const disconnectReason = (value: unknown): Disconnect => {
  if (value === undefined) return DISCONNECT_FORCED
  if (!isObject(value)) throw new InvalidType('disconnect', 'must be an object with code and reason')
  const { code = DISCONNECT_FORCED.code, reason = DISCONNECT_FORCED.reason } = value
  if (!isSafeInteger(code)) throw new InvalidType('disconnect.code', 'must be a whole number')
  if (typeof reason !== 'string') throw new InvalidType('disconnect.reason', 'must be text')
  if (code < 3000 || code > 4999) throw new InvalidField('disconnect.code', 'must be from 3000 to 4999')
  if (reason === '' || Buffer.byteLength(reason) > MAX_REASON_BYTES) {
    throw new InvalidField('disconnect.reason', `must be text of at most ${MAX_REASON_BYTES} bytes`)
  }
  // The official client would parse a JSON reason as advice and might never reconnect.
  if (isJson(reason)) throw new InvalidField('disconnect.reason', 'must not be JSON')
  return new Disconnect(code, reason)
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const disconnect: ApiMethod = async (relay, request) => {
  const { code, reason } = disconnectReason(request.value('disconnect'))
  await relay.disconnectUser({ target: target(request), whitelist: request.texts('whitelist'), code, reason })
  return '{}'
}

const refresh: ApiMethod = async (relay, request) => {
  const refresh = {
    isExpired: request.flag('expired'),
    expiresAt: request.integer('expire_at', 0),
    info: request.json('info')
  }
  await relay.refreshUser({ target: target(request), refresh })
  return '{}'
}

/** How far the clock of the caller may be ahead of ours. */
const CLOCK_SKEW_SECONDS = 60

const invalidateUserTokens: ApiMethod = async (relay, request) => {
  const user = request.requiredText('user')
  const now = Math.floor(relay.clocks.nowMs() / 1000)
  const issuedBefore = request.integer('issued_before', 0) || now
  if (issuedBefore < 0 || issuedBefore > now + CLOCK_SKEW_SECONDS)
    throw new InvalidField(
      'issued_before',
      `must be in seconds since 1970, at most ${CLOCK_SKEW_SECONDS} s in the future`
    )
  return (await relay.invalidateTokens(user, request.text('channel'), issuedBefore)) ?? '{}'
}

const presence: ApiMethod = async (relay, request, budget) => {
  const channel = request.requiredText('channel')
  if (budget.isExhausted) return RESPONSE_TOO_LARGE
  const present = await relay.presence(channel)
  if (present instanceof ReplyError) return present
  const texts = await joinInSlices(present, presenceEntryText, budget.slices, budget.left)
  return budget.fit(texts === null ? null : `{"presence":{${texts}}}`)
}

const presenceStats: ApiMethod = async (relay, request) => {
  const stats = await relay.presenceStats(request.requiredText('channel'))
  return stats instanceof ReplyError ? stats : presenceStatsText(stats)
}

const history: ApiMethod = async (relay, request, budget) => {
  const channel = request.requiredText('channel')
  if (budget.isExhausted) return RESPONSE_TOO_LARGE
  const page = await relay.history({
    channel,
    limit: request.integer('limit', Number.MIN_SAFE_INTEGER),
    since: request.position('since'),
    reverse: request.flag('reverse')
  })
  if (page instanceof ReplyError) return page
  // Checked before the text is built: it could exceed the maximum length of a string.
  return historyTextLength(page.publications) > budget.left ? budget.reject() : budget.fit(historyText(page))
}

const historyRemove: ApiMethod = async (relay, request) =>
  (await relay.removeHistory(request.requiredText('channel'))) ?? '{}'

/** Longer than any reasonable channel pattern. */
const MAX_PATTERN_LENGTH = 1024

const channels: ApiMethod = async (relay, request, budget) => {
  const pattern = request.text('pattern')
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new InvalidField('pattern', `must not be longer than ${MAX_PATTERN_LENGTH} characters`)
  }
  if (globTest(pattern) === null) throw new InvalidField('pattern', 'must be a glob with closed brackets and braces')
  if (budget.isExhausted) return RESPONSE_TOO_LARGE
  const texts = await joinInSlices(
    await relay.channels(pattern, budget.slices),
    ([name, clients]) => `${quote(name)}:{"num_clients":${clients}}`,
    budget.slices,
    budget.left
  )
  return budget.fit(texts === null ? null : `{"channels":{${texts}}}`)
}

const info: ApiMethod = async (relay, _request, budget) => {
  const nodes = await relay.info()
  return budget.fit(`{"nodes":[${nodes.map((node) => JSON.stringify(node)).join(',')}]}`)
}

/** In the order of the method numbers of older publishers. */
export const NUMBERED_METHODS = [
  'publish',
  'broadcast',
  'unsubscribe',
  'disconnect',
  'presence',
  'presence_stats',
  'history',
  'history_remove',
  'channels',
  'info',
  'rpc',
  'subscribe',
  'refresh'
] as const

export type ApiMethodName = (typeof NUMBERED_METHODS)[number] | keyof typeof MAP_METHODS | 'invalidate_user_tokens'

export const API_METHODS: Readonly<Record<ApiMethodName, ApiMethod>> = {
  publish,
  broadcast,
  subscribe,
  unsubscribe,
  disconnect,
  refresh,
  invalidate_user_tokens: invalidateUserTokens,
  presence,
  presence_stats: presenceStats,
  history,
  history_remove: historyRemove,
  channels,
  info,
  // There is no RPC handler behind the relay.
  rpc: () => ERROR_METHOD_NOT_FOUND,
  ...MAP_METHODS
}
