import type { HistoryRange } from '../../core/engine.js'
import type { Publication } from '../../core/publication.js'
import { listReply } from './connection.js'

/** Range command, from, to, count. An id without a sequence number matches the one entry with that offset. */
export const rangeArguments = ({ since, limit, reverse }: HistoryRange): readonly string[] => {
  const count = limit < 0 ? '' : String(limit)
  if (!reverse) return ['XRANGE', since === null ? '-' : String(since.offset + 1), '+', count]
  // No entry comes before offset 1.
  if (since?.offset === 0) return ['XREVRANGE', '+', '-', '0']
  return ['XREVRANGE', since === null ? '+' : String(since.offset - 1), '-', count]
}

/** Stream entries are their ids and fields. A malformed one is left out; a recovering client notices the missing offset. */
export const decodeStream = (
  entries: unknown,
  decodeBody: (body: string, offset: number) => Publication | null
): readonly Publication[] =>
  listReply(entries)
    .map((entry) => {
      const [id, fields] = listReply(entry)
      const [field, body] = listReply(fields)
      return field === 'd' ? decodeBody(String(body), Number.parseInt(String(id), 10)) : null
    })
    .filter((publication) => publication !== null)
