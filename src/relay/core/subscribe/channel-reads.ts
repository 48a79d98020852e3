import { hasHistory, isTooLong, presenceError, type ResolvedChannel, resolveChannel } from '../channel-names.js'
import { ERROR_NOT_AVAILABLE, ReplyError } from '../codes.js'
import type { Action } from '../core-metrics.js'
import type { HistoryPage } from '../engine.js'
import type { ChannelObserver } from '../fan-out/channel.js'
import type { ChannelOptions } from '../options.js'
import type { HistoryCommand } from '../protocol.js'
import type { Publication } from '../publication.js'
import { type RelayContext, runInBackground } from '../session/context.js'
import { removeIfUnused } from '../session/remove-subscription.js'
import { readHistory } from './recovery.js'

// Reads of a channel for the API and the operators' page. Clients read through their commands, which check permissions.

export interface PresenceCount {
  readonly clients: number
  readonly users: number
}

/** Client info as JSON text, by client id. */
export const readPresence = async (
  context: RelayContext,
  channel: string
): Promise<ReadonlyMap<string, string> | ReplyError> => {
  const resolved = resolveWith(context, 'presence', channel, presenceError)
  return resolved instanceof ReplyError ? resolved : context.presence.read(channel)
}

export const countPresence = async (context: RelayContext, channel: string): Promise<PresenceCount | ReplyError> => {
  const resolved = resolveWith(context, 'presence_stats', channel, presenceError)
  return resolved instanceof ReplyError ? resolved : context.presence.count(channel)
}

export const readChannelHistory = async (
  context: RelayContext,
  command: HistoryCommand
): Promise<HistoryPage | ReplyError> => {
  const resolved = resolveWith(context, 'history', command.channel, historyError)
  return resolved instanceof ReplyError ? resolved : readHistory(context, command, resolved.options)
}

export const removeChannelHistory = async (context: RelayContext, channel: string): Promise<ReplyError | null> => {
  const resolved = resolveWith(context, 'history_remove', channel, historyError)
  if (resolved instanceof ReplyError) return resolved
  await context.history.remove(channel)
  context.activity.channels.get(channel)?.clearStored()
  return null
}

const historyError = (options: ChannelOptions): ReplyError | null => (hasHistory(options) ? null : ERROR_NOT_AVAILABLE)

/** Error 102 for an unknown namespace, 108 if the namespace does not have the feature. */
const resolveWith = (
  { channelRules, metrics }: RelayContext,
  action: Action,
  channel: string,
  errorOf: (options: ChannelOptions) => ReplyError | null
): ResolvedChannel | ReplyError => {
  const resolved = resolveChannel(channel, channelRules)
  if (resolved instanceof ReplyError) return resolved
  const error = errorOf(resolved.options)
  if (error !== null) return error
  metrics.engineAction(action, resolved.namespace)
  return resolved
}

/** The engine's view of a channel, for operators. */
export interface ChannelContent {
  /** Newest first. */
  readonly publications: HistoryPage['publications']
  /** Client info as JSON text, by client id; null if the namespace has no presence. */
  readonly presence: ReadonlyMap<string, string> | null
}

/** Without access checks or metrics, as are the following functions. */
export const readChannel = async (
  { history, presence }: RelayContext,
  channel: string,
  { options }: ResolvedChannel,
  limit: number
): Promise<ChannelContent> => {
  const [page, present] = await Promise.all([
    hasHistory(options) ? history.read(channel, { since: null, limit, reverse: true }, options) : null,
    options.presence ? presence.read(channel) : null
  ])
  return { publications: page?.publications ?? [], presence: present }
}

/** The publication at an offset of the history; null if it is not there. */
export const readStoredPublication = async (
  { history }: RelayContext,
  channel: string,
  { options }: ResolvedChannel,
  offset: number
): Promise<Publication | null> => {
  if (!hasHistory(options)) return null
  const { epoch } = await history.read(channel, { since: null, limit: 0, reverse: false }, options)
  const since = { epoch, offset: offset - 1 }
  const { publications } = await history.read(channel, { since, limit: 1, reverse: false }, options)
  return publications.find((publication) => publication.offset === offset) ?? null
}

/** Passes the publications of a channel to the observer until the returned function is called. Null for an invalid name. */
export const observeChannel = (context: RelayContext, name: string, observer: ChannelObserver): (() => void) | null => {
  const resolved = resolveChannel(name, context.channelRules)
  if (resolved instanceof ReplyError || isTooLong(name, context.channelRules)) return null
  const channel = context.hub.open(name, resolved)
  // An error of an observer must not affect the subscribers.
  const contained: ChannelObserver = (publication) => runInBackground(context, () => observer(publication))
  channel.addObserver(contained)
  runInBackground(context, () => channel.subscribeAtBroker(context.broker))
  return () => {
    channel.removeObserver(contained)
    removeIfUnused(context, channel)
  }
}
