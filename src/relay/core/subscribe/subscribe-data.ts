import { isObject } from '../../../shared/is-object.js'
import { jsonOrUndefined } from '../../../shared/json-or-undefined.js'
import type { ResolvedChannel } from '../channel-names.js'
import { ERROR_BAD_REQUEST, ERROR_LIMIT_EXCEEDED, type ReplyError } from '../codes.js'
import { type Rate, rateFor } from '../fan-out/rate-class.js'
import type { TagFilter } from '../fan-out/tag-filter.js'
import { parseView, type View } from '../fan-out/view.js'
import type { SubscribeCommand } from '../protocol.js'
import type { Payload } from '../publication.js'
import type { Client } from '../session/client.js'

// The options of a client in the field `data` of its subscribe command, and the same field of the reply.

/** The rate of a client that limits it with `data: {"max_rate": n}`; null for none. Error 107 for a value that is not a rate. */
export const checkRate = ({ data }: SubscribeCommand, { options }: ResolvedChannel): Rate | null | ReplyError => {
  const rate = options.allowMaxRate ? memberOf(data, 'max_rate') : undefined
  if (rate === undefined) return null
  return typeof rate === 'number' && rate > 0 ? rateFor(rate) : ERROR_BAD_REQUEST
}

/**
 * The view of a client that asks for one with `data: {"view": {x, y, w, h}}`; null for none. Error 107 for a value that is not a view, and with a tag filter: the tags of an entry that leaves may not match.
 */
export const checkView = (
  { data, filter }: SubscribeCommand,
  { options }: ResolvedChannel
): View | null | ReplyError => {
  const asked = options.view === null ? undefined : memberOf(data, 'view')
  if (asked === undefined || options.view === null) return null
  return (filter === null ? parseView(asked, options.view.cell) : null) ?? ERROR_BAD_REQUEST
}

/** Error 106 if the subscribers of the channel have too many other filters. */
export const filterLimitError = ({ context }: Client, channel: string, filter: TagFilter | null): ReplyError | null => {
  const open = context.hub.channels.get(channel)
  return filter === null || open === undefined || open.filters.accepts(filter) ? null : ERROR_LIMIT_EXCEEDED
}

/** A member of the data if that is an object. Clients may send any bytes. */
const memberOf = (data: unknown, name: string): unknown => {
  const value = Buffer.isBuffer(data) ? jsonOrUndefined(data.toString()) : data
  return isObject(value) ? value[name] : undefined
}

/** Whether `replyData` can add to the data of the token or backend: only objects have space for more. */
export const canExtend = (data: Payload | null): data is string | null =>
  data === null || (typeof data === 'string' && data.trimStart().startsWith('{'))

/** The data of the token or backend, with rate and view of the client at its end. */
export const replyData = (data: Payload | null, rate: Rate | null, view: View | null): Payload | null => {
  if (!canExtend(data)) return data
  const members = [
    data === null ? '' : data.slice(data.indexOf('{') + 1, data.lastIndexOf('}')).trim(),
    rate === null ? '' : `"max_rate":${rate}`,
    view?.isLimited ? `"view":${view.text}` : ''
  ]
  const text = members.filter((member) => member !== '').join(',')
  return text === '' ? data : `{${text}}`
}
