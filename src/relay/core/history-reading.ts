import type { HistoryPage } from './broker.js'
import type { Context } from './context.js'
import { BAD_REQUEST, type ReplyError, UNRECOVERABLE_POSITION } from './errors.js'
import { after, type MaybePromise } from './maybe-promise.js'
import type { ChannelOptions } from './options.js'
import type { HistoryRequest } from './requests.js'

/** What clients and the API ask of the history, with the errors that both are answered with. */
export const readHistory = (
  { history }: Context,
  { channel, since, limit, reverse }: HistoryRequest,
  options: ChannelOptions
): MaybePromise<HistoryPage | ReplyError> => {
  if (reverse && since !== null && since.offset === 0) return BAD_REQUEST
  return after(history.read(channel, { since, limit, reverse }, options), (page) =>
    since !== null && since.epoch !== '' && since.epoch !== page.epoch ? UNRECOVERABLE_POSITION : page
  )
}
