import type { HistoryRange, JoinOrLeave, PublishTarget, RetainedPage } from '../core/engine.js'
import type { HistoryOptions } from '../core/options.js'
import type { NewPublication, Position, Publication, Published } from '../core/publication.js'
import type { FrameReader, FrameWriter } from './frames.js'

// Encoding and decoding of the core's types in IPC frames.

export const writePosition = (out: FrameWriter, { epoch, offset }: Position): void => {
  out.text(epoch).number(offset)
}

export const readPosition = (fields: FrameReader): Position => ({ epoch: fields.text(), offset: fields.number() })

export const writePublication = (out: FrameWriter, publication: Publication): void => {
  const { data, offset, info, tags, time, delta, version, trace } = publication
  out
    .payload(data)
    .number(offset)
    .textOrNull(info)
    .textOrNull(tags)
    .number(time)
    .byte(delta ? 1 : 0)
    .number(version)
    .textOrNull(trace ?? null)
  writeMapFields(out, publication)
}

export const readPublication = (fields: FrameReader): Publication => ({
  data: fields.payload(),
  offset: fields.number(),
  info: fields.textOrNull(),
  tags: fields.textOrNull(),
  time: fields.number(),
  delta: fields.byte() === 1,
  version: fields.number(),
  ...readTrace(fields),
  ...readMapFields(fields)
})

export const readTrace = (fields: FrameReader): { readonly trace?: string } => {
  const trace = fields.textOrNull()
  return trace === null ? NOTHING : { trace }
}

const NOTHING = {}

/** The fields of an entry of a map, after a byte: 0 no entry, 1 written, 2 removed. */
const writeMapFields = (out: FrameWriter, { key, removed, previous }: Publication): void => {
  if (key === undefined) {
    out.byte(0)
    return
  }
  out.byte(removed === true ? 2 : 1).text(key)
  if (previous === undefined) out.byte(0)
  else out.byte(1).payload(previous.data).textOrNull(previous.tags)
}

const readMapFields = (fields: FrameReader): Pick<Publication, 'key' | 'removed' | 'previous'> => {
  const kind = fields.byte()
  if (kind === 0) return NOTHING
  const key = fields.text()
  const hasPrevious = fields.byte() === 1
  return {
    key,
    ...(kind === 2 && { removed: true }),
    ...(hasPrevious && { previous: { data: fields.payload(), tags: fields.textOrNull() } })
  }
}

export const writeNewPublication = (out: FrameWriter, publication: NewPublication): void => {
  const { data, info, tags, delta, skipHistory, idempotencyKey, version, versionEpoch, trace } = publication
  out
    .payload(data)
    .textOrNull(info)
    .textOrNull(tags)
    .byte(delta ? 1 : 0)
    .byte(skipHistory ? 1 : 0)
    .text(idempotencyKey)
    .number(version)
    .text(versionEpoch)
    .textOrNull(trace ?? null)
}

export const readNewPublication = (fields: FrameReader): NewPublication => ({
  data: fields.payload(),
  info: fields.textOrNull(),
  tags: fields.textOrNull(),
  delta: fields.byte() === 1,
  skipHistory: fields.byte() === 1,
  idempotencyKey: fields.text(),
  version: fields.number(),
  versionEpoch: fields.text(),
  ...readTrace(fields)
})

export const writeHistoryOptions = (out: FrameWriter, options: HistoryOptions): void => {
  out.number(options.historySize).number(options.historyTtlMs).number(options.historyMetaTtlMs)
}

export const readHistoryOptions = (fields: FrameReader): HistoryOptions => ({
  historySize: fields.number(),
  historyTtlMs: fields.number(),
  historyMetaTtlMs: fields.number()
})

export const readPublishTarget = (fields: FrameReader): PublishTarget => ({
  channel: fields.text(),
  options: readHistoryOptions(fields)
})

const SUPPRESSED_BY = [null, 'idempotency', 'version'] as const

export const writePublished = (out: FrameWriter, published: Published): void => {
  writePosition(out, published)
  out.byte(SUPPRESSED_BY.indexOf(published.suppressedBy))
}

export const readPublished = (fields: FrameReader): Published => ({
  ...readPosition(fields),
  suppressedBy: SUPPRESSED_BY[fields.byte()] ?? null
})

export const writeHistoryRange = (out: FrameWriter, { since, limit, reverse }: HistoryRange): void => {
  out.byte(since === null ? 0 : 1)
  if (since !== null) writePosition(out, since)
  out.number(limit).byte(reverse ? 1 : 0)
}

export const readHistoryRange = (fields: FrameReader): HistoryRange => ({
  since: fields.byte() === 0 ? null : readPosition(fields),
  limit: fields.number(),
  reverse: fields.byte() === 1
})

export const writeList = <T>(
  out: FrameWriter,
  list: readonly T[],
  writeEntry: (out: FrameWriter, entry: T) => void
): void => {
  out.number(list.length)
  for (const entry of list) writeEntry(out, entry)
}

export const readList = <T>(fields: FrameReader, readEntry: (fields: FrameReader) => T): readonly T[] =>
  Array.from({ length: fields.number() }, () => readEntry(fields))

export const writeHistoryPage = (out: FrameWriter, page: RetainedPage): void => {
  writePosition(out, page)
  out.number(page.oldest)
  writeList(out, page.publications, writePublication)
}

export const readHistoryPage = (fields: FrameReader): RetainedPage => ({
  ...readPosition(fields),
  oldest: fields.number(),
  publications: readList(fields, readPublication)
})

export const writeJoinOrLeave = (out: FrameWriter, kind: JoinOrLeave, info: string): void => {
  out.byte(kind === 'join' ? 1 : 0).text(info)
}

export const readJoinOrLeave = (fields: FrameReader): { readonly kind: JoinOrLeave; readonly info: string } => ({
  kind: fields.byte() === 1 ? 'join' : 'leave',
  info: fields.text()
})
