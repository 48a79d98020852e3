import { dataField, objectText, positionFields, quote } from '../core/codec/json-codec.js'
import { ReplyError } from '../core/codes.js'
import type { MapChanged } from '../core/engine.js'
import { entryLength } from '../core/maps/read-map.js'
import { PLAIN_WRITE } from '../core/maps/write-map.js'
import { after } from '../core/maybe-promise.js'
import type { Position, Publication } from '../core/publication.js'
import { joinInSlices } from '../core/time-slice.js'
import { tracePublish } from './publish-span.js'
import { type ApiBudget, type ApiMethod, type ApiResult, RESPONSE_TOO_LARGE } from './reply.js'
import type { ApiRequest } from './request.js'

// Fields with an empty value are omitted from results.

const changedText = (outcome: MapChanged | ReplyError): ApiResult => {
  if (outcome instanceof ReplyError) return outcome
  const { suppressedBy } = outcome
  const suppressed = suppressedBy === null ? '' : `,"suppressed":true,"suppress_reason":"${suppressedBy}"`
  return objectText(`${positionFields(outcome)}${suppressed}`)
}

/** `score` is accepted and has no effect. */
const mapPublish: ApiMethod = (relay, request, { span }) => {
  const channel = request.requiredText('channel')
  const write = {
    ...PLAIN_WRITE,
    key: request.requiredText('key'),
    data: request.payload('data'),
    tags: request.tags(),
    delta: request.flag('delta'),
    idempotencyKey: request.text('idempotency_key'),
    version: request.integer('version', 0),
    versionEpoch: request.text('version_epoch'),
    keyMode: request.keyMode()
  }
  return tracePublish(span, write, channel, (traced) => after(relay.maps.write(channel, traced), changedText))
}

const mapRemove: ApiMethod = (relay, request) => {
  const removal = { key: request.requiredText('key'), idempotencyKey: request.text('idempotency_key') }
  return after(relay.maps.remove(request.requiredText('channel'), removal), changedText)
}

/** Null if both fields are missing. */
const position = (request: ApiRequest, prefix: 'revision' | 'since'): Position | null => {
  const offset = request.integer(`${prefix}_offset`, 0)
  const epoch = request.text(`${prefix}_epoch`)
  return offset === 0 && epoch === '' ? null : { offset, epoch }
}

const entryText = ({ key = '', data, tags, offset, removed, time }: Publication): string =>
  objectText(
    `,"key":${quote(key)}${removed ? '' : `,${dataField(data)}`}` +
      (tags === null ? '' : `,"tags":${tags}`) +
      (offset > 0 ? `,"offset":${offset}` : '') +
      (removed ? ',"removed":true' : '') +
      (time > 0 ? `,"time":${time}` : '')
  )

const entriesText = async (entries: readonly Publication[], more: string, budget: ApiBudget): Promise<ApiResult> => {
  if (entries.length === 0) return budget.fit(objectText(more))
  const texts = await joinInSlices(entries, entryText, budget.slices, budget.left)
  return budget.fit(texts === null ? null : objectText(`,"entries":[${texts}]${more}`))
}

/** `asc` has no effect: the order of the entries is always the same. */
const mapReadState: ApiMethod = async (relay, request, budget) => {
  const query = {
    channel: request.requiredText('channel'),
    cursor: request.text('cursor'),
    limit: request.integer('limit', Number.MIN_SAFE_INTEGER),
    key: request.text('key'),
    revisionEpoch: position(request, 'revision')?.epoch ?? null
  }
  if (budget.isExhausted) return RESPONSE_TOO_LARGE
  const state = await relay.maps.readState(query, budget.left)
  if (state instanceof ReplyError) return state
  if (state === null) return budget.reject()
  const { entries, cursor } = state
  return entriesText(entries, `${positionFields(state)}${cursor === '' ? '' : `,"cursor":${quote(cursor)}`}`, budget)
}

const mapReadStream: ApiMethod = async (relay, request, budget) => {
  const query = {
    channel: request.requiredText('channel'),
    limit: request.integer('limit', Number.MIN_SAFE_INTEGER),
    since: position(request, 'since'),
    reverse: request.flag('reverse')
  }
  if (budget.isExhausted) return RESPONSE_TOO_LARGE
  const page = await relay.maps.readStream(query)
  if (page instanceof ReplyError) return page
  const length = page.publications.reduce((sum, each) => sum + entryLength(each), 0)
  return length > budget.left ? budget.reject() : entriesText(page.publications, positionFields(page), budget)
}

const mapStats: ApiMethod = async (relay, request) => {
  const keys = await relay.maps.count(request.requiredText('channel'))
  if (keys instanceof ReplyError) return keys
  return keys === 0 ? '{}' : `{"num_keys":${keys}}`
}

const mapClear: ApiMethod = async (relay, request) => (await relay.maps.clear(request.requiredText('channel'))) ?? '{}'

/** Methods without a number: they are younger than the numbers. */
export const MAP_METHODS = {
  map_publish: mapPublish,
  map_remove: mapRemove,
  map_read_state: mapReadState,
  map_read_stream: mapReadStream,
  map_stats: mapStats,
  map_clear: mapClear
} as const satisfies Readonly<Record<string, ApiMethod>>
