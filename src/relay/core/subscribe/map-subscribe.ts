import { isSameKind, type ResolvedChannel, resolveChannel } from '../channel-names.js'
import type { SubscribeReply } from '../codec/codec.js'
import {
  Disconnect,
  ERROR_ALREADY_SUBSCRIBED,
  ERROR_BAD_REQUEST,
  ERROR_BINARY_CHANNEL,
  ERROR_PERMISSION_DENIED,
  ERROR_UNRECOVERABLE_POSITION,
  ReplyError
} from '../codes.js'
import type { SubscribeEventResult } from '../event-proxies.js'
import type { TagFilter } from '../fan-out/tag-filter.js'
import type { View } from '../fan-out/view.js'
import type { MapOptions, SubscriptionType } from '../options.js'
import { PHASE_LIVE, PHASE_STATE, PHASE_STREAM, type SubscribeCommand } from '../protocol.js'
import type { Position } from '../publication.js'
import type { Client, CommandOutcome, RunningCommand } from '../session/client.js'
import type { MapLoading } from '../session/map-loading.js'
import { goLiveBuffered, goLiveFrom, NO_ENTRIES, startBuffering } from './map-live.js'
import {
  changesReply,
  type EntryPage,
  entriesReply,
  pageSize,
  readChanges,
  readEntries,
  readStreamEnd
} from './map-pages.js'
import { hasPositions } from './subscribe-request.js'

/** Values of the `type` field. */
export const TYPES: Readonly<Record<SubscriptionType, number>> = { stream: 0, map: 1, map_clients: 2, map_users: 3 }

/** The error of a request to a map by a client without a reservation, which later requests need. */
export const firstRequestError = (command: SubscribeCommand, options: MapOptions): ReplyError | null => {
  const error = phaseError(command, options)
  if (error !== null) return error
  const { phase, cursor, recover } = command
  // Without a position, `startLoading` replies with error 112.
  const isFirst = cursor === '' && (phase !== PHASE_STREAM || recover !== null)
  return isFirst ? null : ERROR_PERMISSION_DENIED
}

const phaseError = ({ phase }: SubscribeCommand, options: MapOptions): ReplyError | null => {
  if (phase === PHASE_STATE || phase === PHASE_LIVE) return null
  return phase === PHASE_STREAM && hasPositions(options) ? null : ERROR_BAD_REQUEST
}

/** The part of a map that a client may receive. */
export interface MapGrant {
  readonly grant: SubscribeEventResult
  readonly filter: TagFilter | null
  readonly view: View | null
}

/** The first request of a client that may subscribe: it reserves the channel until the client is live. */
export const startLoading = async (
  client: Client,
  command: SubscribeCommand,
  resolved: ResolvedChannel,
  options: MapOptions,
  { grant, filter, view }: MapGrant,
  running: RunningCommand
): Promise<CommandOutcome> => {
  const { codec, context } = client
  if (resolved.options.publicationDataFormat === 'binary' && !codec.allowsBinary) return ERROR_BINARY_CHANNEL
  const hasPosition = hasPositions(options) && view === null
  // Without a position there is nothing to recover.
  if (command.phase !== PHASE_STATE && !hasPosition) return ERROR_UNRECOVERABLE_POSITION
  const loading: MapLoading = {
    channel: command.channel,
    resolved,
    options,
    grant,
    filter,
    view,
    delta: view === null && command.delta && resolved.options.allowedDeltaTypes.includes('fossil'),
    joinLeave: command.joinLeave,
    deadlineMs: context.monotonicMs() + options.catchUpTimeoutMs,
    frozen: null,
    next: '',
    catchUpTo: null,
    subscription: null
  }
  if (!hasPosition) startBuffering(client, loading)
  client.loadings.add(loading)
  return serve(client, loading, command, running)
}

/** A later request of a client that is loading a map. */
export const continueLoading = async (
  client: Client,
  loading: MapLoading,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  const { phase, cursor } = command
  if (phase === PHASE_STATE && cursor === '') return ERROR_ALREADY_SUBSCRIBED
  const error = laterRequestError(client, loading, command)
  if (error === null) return serve(client, loading, command, running)
  client.loadings.cancel(loading.channel)
  return error
}

const laterRequestError = (
  { context }: Client,
  { channel, resolved, options }: MapLoading,
  command: SubscribeCommand
): ReplyError | null => {
  const current = resolveChannel(channel, context.channelRules)
  // After a reload, the first request decides again.
  if (current instanceof ReplyError || !isSameKind(current.options, resolved.options))
    return ERROR_UNRECOVERABLE_POSITION
  return command.type === TYPES[resolved.options.subscriptionType]
    ? phaseError(command, options)
    : ERROR_PERMISSION_DENIED
}

/** An error ends the reservation: clients start again after one. */
const serve = async (
  client: Client,
  loading: MapLoading,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  try {
    const outcome = await serveRequest(client, loading, command, running)
    if (outcome !== null) client.loadings.cancel(loading.channel)
    return outcome
  } catch (error) {
    client.loadings.cancel(loading.channel)
    throw error
  }
}

const serveRequest = async (
  client: Client,
  loading: MapLoading,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  if (command.phase === PHASE_STATE) return serveEntries(client, loading, command, running)
  if (loading.subscription !== null) return ERROR_BAD_REQUEST
  // The SDK moves its position with every page of changes, but drops the pages after an interruption. A client that is loading starts
  // from its first page then; one that is recovering would miss them, so it receives all changes at once or error 112.
  return command.phase === PHASE_STREAM && command.recover === null
    ? serveChanges(client, loading, command, running)
    : serveLive(client, loading, command, running)
}

/** Null while the client loads; otherwise it was closed, or the API has unsubscribed it. */
const interruption = ({ isClosed, loadings }: Client, loading: MapLoading): CommandOutcome | undefined => {
  if (isClosed) return null
  return loadings.get(loading.channel) === loading ? undefined : ERROR_PERMISSION_DENIED
}

/** The limit of replies applies only to a page that was small enough for it, because a page has at least one entry. */
const replyWith = (client: Client, running: RunningCommand, result: SubscribeReply, pageBytes = 0): null => {
  client.reply(running, 'subscribe', result, pageBytes > client.replyBytesLeft)
  return null
}

const serveEntries = async (
  client: Client,
  loading: MapLoading,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  const limit = pageSize(command, loading.options)
  const { next } = loading
  const page = next === null ? 'loaded' : await readEntries(client, loading, { ...command, cursor: next }, limit)
  const interrupted = interruption(client, loading)
  if (interrupted !== undefined) return interrupted
  if (page instanceof ReplyError || page instanceof Disconnect) return page
  if (loading.subscription?.loading?.isComplete === false) return ERROR_UNRECOVERABLE_POSITION
  if (page === 'loaded') return replyWith(client, running, entriesReply(loading, NO_ENTRIES, ''))
  if (page.cursor === '') return finishEntries(client, loading, page, command, running)
  loading.next = page.cursor
  return replyWith(client, running, entriesReply(loading, page, page.cursor), page.bytes)
}

/** After the last page, a client is live unless it has many changes to catch up. */
const finishEntries = async (
  client: Client,
  loading: MapLoading,
  page: EntryPage,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  const { subscription } = loading
  const limit = pageSize(command, loading.options)
  const start = { position: catchUpStart(loading, page, command), entries: page, isRecovering: false }
  if (subscription !== null) {
    const outcome = goLiveBuffered(client, loading, subscription, start, running)
    if (outcome !== 'too-large') return outcome
    // The changes are sent with the next page, which is empty then.
    if (page.publications.length === 0) return ERROR_UNRECOVERABLE_POSITION
  } else if (start.position.offset + limit >= page.position.offset) {
    const outcome = await goLiveFrom(client, loading, start, running)
    if (outcome !== 'too-large') return outcome
  }
  const cursor = subscription === null ? '' : page.lastKey
  loading.next = subscription === null ? null : cursor
  return replyWith(client, running, entriesReply(loading, page, cursor), page.bytes)
}

/** The first page, or an earlier position of the client: the SDK may have kept a page of an attempt that it has given up. */
const catchUpStart = ({ frozen }: MapLoading, page: EntryPage, { position }: SubscribeCommand): Position => {
  const first = frozen ?? page.position
  return position.epoch === first.epoch && position.offset < first.offset ? position : first
}

const serveChanges = async (
  client: Client,
  loading: MapLoading,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  const limit = pageSize(command, loading.options)
  const { position } = command
  const end = loading.catchUpTo ?? (await readStreamEnd(client, loading)).offset
  const ended = interruption(client, loading)
  if (ended !== undefined) return ended
  loading.catchUpTo = end
  if (position.offset + limit >= end) {
    const start = { position, entries: NO_ENTRIES, isRecovering: false }
    const outcome = await goLiveFrom(client, loading, start, running)
    if (outcome !== 'too-large') return outcome
  }
  const page = await readChanges(client, loading, command, limit)
  const interrupted = interruption(client, loading)
  if (interrupted !== undefined) return interrupted
  if (page instanceof ReplyError || page instanceof Disconnect) return page
  return replyWith(client, running, changesReply(page), page.bytes)
}

/** The client recovers, or wants to be live with this request. */
const serveLive = async (
  client: Client,
  loading: MapLoading,
  command: SubscribeCommand,
  running: RunningCommand
): Promise<CommandOutcome> => {
  const start = { position: command.position, entries: NO_ENTRIES, isRecovering: command.recover !== null }
  const outcome = await goLiveFrom(client, loading, start, running)
  return outcome === 'too-large' ? ERROR_UNRECOVERABLE_POSITION : outcome
}
