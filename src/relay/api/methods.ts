import { EMPTY_CHANNEL, broadcast as publishToMany } from '../core/broadcast.js'
import type { NewPublication, Position } from '../core/broker.js'
import { after, EngineError, type MaybePromise } from '../core/broker.js'
import { hasHistory, type ResolvedChannel, resolveChannel } from '../core/channels.js'
import { DISCONNECT_FORCED, Disconnect, ERROR_INTERNAL, ERROR_NOT_AVAILABLE, ReplyError } from '../core/codes.js'
import type { Action } from '../core/metrics.js'
import {
  historyLength,
  historyText,
  isObject,
  objectText,
  positionFields,
  presenceEntryText,
  presenceStatsText,
  quote
} from '../core/protocol.js'
import { cachedSchemaCheck } from '../core/publish.js'
import { readHistory } from '../core/recovery.js'
import type { Relay } from '../core/relay.js'
import type { ChannelPage, Command, SurveyParams, SurveyResult, UserSelector } from '../core/survey.js'
import { forEachInSlices, joinInSlices } from '../core/time-slice.js'
import { type ApiBudget, errorJson, RESPONSE_TOO_LARGE, resultJson } from './reply.js'
import { type ApiRequest, InvalidField } from './request.js'

/** Answers with the JSON text of a result. Throws `BadField` where the request cannot be read. */
export type ApiMethod = (relay: Relay, request: ApiRequest, work: ApiBudget) => MaybePromise<string | ReplyError>

/** 104 has other words here than for clients. */
export const NOT_FOUND = new ReplyError(104, 'not found')

const publicationOf = (request: ApiRequest): NewPublication => {
  const data = request.json('data')
  if (data === null) throw new InvalidField('data', 'is missing')
  return {
    data,
    info: null,
    tags: request.tags(),
    delta: request.flag('delta'),
    skipHistory: request.flag('skip_history'),
    idempotencyKey: request.text('idempotency_key'),
    version: request.whole('version', 0),
    versionEpoch: request.text('version_epoch')
  }
}

const positionText = (position: Position): string => objectText(positionFields(position))

const publish: ApiMethod = (relay, request) => {
  const channel = request.requiredText('channel')
  return after(relay.publish(channel, publicationOf(request)), (outcome) =>
    outcome instanceof ReplyError ? outcome : positionText(outcome)
  )
}

const engineFaultJson = (error: unknown): string => {
  if (!(error instanceof EngineError)) throw error
  return errorJson(ERROR_INTERNAL)
}

// Up to here a broadcast is made as so many publications: within one turn, together with what else the request publishes.
const FEW_CHANNELS = 64
const FEW_CHARACTERS = 256 * 1024

/** Every channel has an answer of its own; one that fails does not hold up the others. */
const broadcast: ApiMethod = (relay, request, work) => {
  const channels = request.texts('channels')
  if (channels.length === 0) throw new InvalidField('channels', 'is missing')
  const publication = publicationOf(request)
  if (channels.length > FEW_CHANNELS || channels.length * publication.data.length > FEW_CHARACTERS) {
    const responses = broadcastToMany(relay, channels, publication, work)
    // Only to wait for: an error is for the caller of this method.
    work.barrier = responses.catch(() => undefined)
    return responses
  }
  const findFault = cachedSchemaCheck(relay.context, publication)
  const responses = channels.map((channel) => {
    if (channel === '') return outcomeJson(EMPTY_CHANNEL)
    const answer = after(relay.publish(channel, publication, findFault), outcomeJson)
    return answer instanceof Promise ? answer.catch(engineFaultJson) : answer
  })
  const write = (texts: readonly string[]): string => `{"responses":[${texts.join(',')}]}`
  return responses.some((each) => each instanceof Promise)
    ? Promise.all(responses).then(write)
    : write(responses as string[])
}

const outcomeJson = (outcome: Position | ReplyError): string =>
  outcome instanceof ReplyError ? errorJson(outcome) : resultJson(positionText(outcome))

const broadcastToMany = async (
  { context }: Relay,
  channels: readonly string[],
  publication: NewPublication,
  { slices }: ApiBudget
): Promise<string> => {
  const outcomes = await publishToMany(context, channels, publication, slices)
  const texts = await joinInSlices(outcomes, outcomeJson, slices)
  return `{"responses":[${texts}]}`
}

const target = (request: ApiRequest): UserSelector => ({
  user: request.text('user'),
  client: request.text('client'),
  session: request.text('session')
})

/** Error 100 unless every live node has confirmed; the fleet then goes on by itself until the command is applied. */
const everywhere = <C extends Command>(
  { context: { cluster } }: Relay,
  command: C,
  params: SurveyParams<C>
): MaybePromise<readonly SurveyResult<C>[]> =>
  after(cluster.apply(command, params), ({ answers, isConfirmed }) => {
    if (!isConfirmed) throw new EngineError('not every node has confirmed')
    return answers
  })

const subscribe: ApiMethod = (relay, request) => {
  const subscription = {
    channel: request.requiredText('channel'),
    expiresAt: request.whole('expire_at', 0),
    info: request.json('info'),
    data: request.json('data'),
    override: request.override(),
    recover: request.position('recover_since')
  }
  return after(everywhere(relay, 'subscribe', { target: target(request), subscription }), (answers) => {
    const refused = answers.find((answer) => answer !== null)
    return refused ? new ReplyError(refused.code, refused.message, refused.temporary) : '{}'
  })
}

const unsubscribe: ApiMethod = (relay, request) => {
  const channel = request.text('channel')
  if (channel !== '') {
    const kind = resolveChannel(channel, relay.context.channelRules)
    if (kind instanceof ReplyError) return kind
  }
  return after(everywhere(relay, 'unsubscribe', { target: target(request), channel }), () => '{}')
}

const MAX_REASON_BYTES = 123

/** What the caller chose; a code that a close frame may carry, and a reason, without which it means something else. */
const disconnectReason = (value: unknown): Disconnect => {
  if (value === undefined) return DISCONNECT_FORCED
  if (!isObject(value)) throw new InvalidField('disconnect', 'must be an object with code and reason')
  const { code = DISCONNECT_FORCED.code, reason = DISCONNECT_FORCED.reason } = value
  if (!Number.isInteger(code) || (code as number) < 3000 || (code as number) > 4999) {
    throw new InvalidField('disconnect.code', 'must be from 3000 to 4999')
  }
  if (typeof reason !== 'string' || reason === '' || Buffer.byteLength(reason) > MAX_REASON_BYTES) {
    throw new InvalidField('disconnect.reason', `must be text of at most ${MAX_REASON_BYTES} bytes`)
  }
  // The official client takes it for an object of its own, and then stays away whatever the code.
  if (isJson(reason)) throw new InvalidField('disconnect.reason', 'must not be JSON')
  return new Disconnect(code as number, reason)
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const disconnect: ApiMethod = (relay, request) => {
  const { code, reason } = disconnectReason(request.value('disconnect'))
  const params = { target: target(request), whitelist: request.texts('whitelist'), code, reason }
  return after(everywhere(relay, 'disconnect', params), () => '{}')
}

const refresh: ApiMethod = (relay, request) => {
  const refresh = {
    isExpired: request.flag('expired'),
    expiresAt: request.whole('expire_at', 0),
    info: request.json('info')
  }
  return after(everywhere(relay, 'refresh', { target: target(request), refresh }), () => '{}')
}

/** For methods about a channel: unknown namespaces are 102, options that are off are 108. */
const onChannel =
  (
    action: Action,
    isOn: (kind: ResolvedChannel) => boolean,
    run: (
      relay: Relay,
      channel: string,
      request: ApiRequest,
      work: ApiBudget,
      kind: ResolvedChannel
    ) => MaybePromise<string | ReplyError>
  ): ApiMethod =>
  (relay, request, work) => {
    const channel = request.requiredText('channel')
    const kind = resolveChannel(channel, relay.context.channelRules)
    if (kind instanceof ReplyError) return kind
    if (!isOn(kind)) return ERROR_NOT_AVAILABLE
    relay.context.metrics.engineAction(action, kind.namespace)
    return run(relay, channel, request, work, kind)
  }

const presence = onChannel(
  'presence',
  ({ options }) => options.presence,
  async (relay, channel, _request, work) => {
    if (work.isExhausted) return RESPONSE_TOO_LARGE
    const present = await relay.context.presence.read(channel)
    const texts = await joinInSlices(present, presenceEntryText, work.slices, work.left)
    return work.fit(texts === null ? null : `{"presence":{${texts}}}`)
  }
)

const presenceStats = onChannel(
  'presence_stats',
  ({ options }) => options.presence,
  (relay, channel) =>
    after(relay.context.presence.count(channel), ({ clients, users }) => presenceStatsText(clients, users))
)

const history = onChannel(
  'history',
  ({ options }) => hasHistory(options),
  (relay, channel, request, work, { options }) => {
    if (work.isExhausted) return RESPONSE_TOO_LARGE
    const range = {
      channel,
      limit: request.whole('limit', Number.MIN_SAFE_INTEGER),
      since: request.position('since'),
      reverse: request.flag('reverse')
    }
    return after(readHistory(relay.context, range, options), (page) => {
      if (page instanceof ReplyError) return page
      // Before it is written: the text of one page may be longer than a text can be.
      return historyLength(page.publications) > work.left
        ? work.refuse()
        : work.fit(historyText(page.publications, page))
    })
  }
)

const historyRemove = onChannel(
  'history_remove',
  ({ options }) => hasHistory(options),
  (relay, channel) =>
    after(relay.context.history.remove(channel), () => {
      relay.context.activity.channels.get(channel)?.forgetKept()
      return '{}'
    })
)

/** Longer than any name that somebody would look for. */
const MAX_PATTERN_LENGTH = 1024

const channels: ApiMethod = async ({ context: { cluster } }, request, work) => {
  const pattern = request.text('pattern')
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw new InvalidField('pattern', `must not be longer than ${MAX_PATTERN_LENGTH} characters`)
  }
  if (work.isExhausted) return RESPONSE_TOO_LARGE
  const counts = new Map<string, number>()
  const add = ({ channels }: ChannelPage): Promise<void> =>
    forEachInSlices(channels, ([name, clients]) => counts.set(name, (counts.get(name) ?? 0) + clients), work.slices)
  for (const { node, answer } of await cluster.survey('channelPage', { pattern, after: 0 })) {
    await add(answer)
    for (let { next } = answer; next !== null; ) {
      const page: ChannelPage | null = await cluster.surveyNode(node, 'channelPage', { pattern, after: next })
      // The node is gone, and its clients with it.
      if (page === null) break
      await add(page)
      next = page.next
    }
  }
  const texts = await joinInSlices(
    counts,
    ([name, clients]) => `${quote(name)}:{"num_clients":${clients}}`,
    work.slices,
    work.left
  )
  return work.fit(texts === null ? null : `{"channels":{${texts}}}`)
}

const info: ApiMethod = (relay, _request, work) =>
  after(relay.context.cluster.survey('info', null), (answers) =>
    work.fit(`{"nodes":[${answers.map(({ answer }) => JSON.stringify(answer)).join(',')}]}`)
  )

/** In the order of the numbers that old publishers use for them. */
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

export type ApiMethodName = (typeof NUMBERED_METHODS)[number]

export const API_METHODS: Readonly<Record<ApiMethodName, ApiMethod>> = {
  publish,
  broadcast,
  subscribe,
  unsubscribe,
  disconnect,
  refresh,
  presence,
  presence_stats: presenceStats,
  history,
  history_remove: historyRemove,
  channels,
  info,
  // Nothing behind this relay answers calls.
  rpc: () => NOT_FOUND
}
