import type { Log } from '../../../shared/log.js'
import type { ResolvedChannel } from '../channel-names.js'
import { ERROR_BAD_REQUEST, ERROR_INTERNAL, ERROR_LIMIT_EXCEEDED, ReplyError } from '../codes.js'
import type { MapChanged, MapRemoval, Maps, MapWrite } from '../engine.js'
import { after, type MaybePromise } from '../maybe-promise.js'
import type { MapOptions } from '../options.js'
import { inDataFormat, type PublishContext, publicationError, schemaCheck, withDelta } from '../publish/publish.js'

/** The parts of the core that maps need. */
export interface MapContext extends PublishContext {
  readonly maps: Maps
  readonly log: Log
}

/** A channel that is a map. */
export interface ResolvedMap extends ResolvedChannel {
  readonly map: MapOptions
}

const ERROR_NOT_A_MAP = ERROR_BAD_REQUEST.with('the channel is not a map')

export const asMap = (resolved: ResolvedChannel): ResolvedMap | ReplyError => {
  const { map } = resolved.options
  return map === null ? ERROR_NOT_A_MAP : { ...resolved, map }
}

export const PLAIN_WRITE: MapWrite = {
  key: '',
  data: 'null',
  info: null,
  tags: null,
  delta: false,
  idempotencyKey: '',
  version: 0,
  versionEpoch: '',
  keyMode: null,
  renews: false
}

const MAX_KEY_BYTES = 1024
const ERROR_NO_KEY = ERROR_BAD_REQUEST.with('key is missing')
const ERROR_LONG_KEY = ERROR_BAD_REQUEST.with(`key must not be longer than ${MAX_KEY_BYTES} bytes`)
const ERROR_BAD_KEY = ERROR_BAD_REQUEST.with('key must be well-formed Unicode')
const LONE_SURROGATE = /\p{Surrogate}/u
const ERROR_FULL = ERROR_LIMIT_EXCEEDED.with('the map has its maximum number of keys')
const ERROR_NO_VERSIONS = ERROR_INTERNAL.with('an ephemeral map has no versions')

/** Null if the key is valid. A lone surrogate has no form in UTF-8, so two such keys could become one in an engine. */
export const keyError = (key: string): ReplyError | null => {
  if (key === '') return ERROR_NO_KEY
  // A UTF-16 code unit has at most three bytes in UTF-8, so the bytes of most keys need not be counted.
  if (key.length * 3 > MAX_KEY_BYTES && Buffer.byteLength(key) > MAX_KEY_BYTES) return ERROR_LONG_KEY
  return LONE_SURROGATE.test(key) ? ERROR_BAD_KEY : null
}

/** Checks and writes an entry. */
export const writeToMap = (
  context: MapContext,
  resolved: ResolvedMap,
  channel: string,
  received: MapWrite
): MaybePromise<MapChanged | ReplyError> => {
  const { options } = resolved
  const formatted = inDataFormat(received, options)
  return formatted instanceof ReplyError
    ? formatted
    : writeFormatted(context, resolved, channel, withDelta(formatted, options))
}

/** Checks and writes an entry whose data format was checked before. */
export const writeFormatted = (
  context: MapContext,
  resolved: ResolvedMap,
  channel: string,
  write: MapWrite
): MaybePromise<MapChanged | ReplyError> => {
  const { options, map } = resolved
  const error = keyError(write.key) ?? publicationError(options, schemaCheck(context, write))
  if (error !== null) return error
  if (write.version > 0 && map.mode === 'ephemeral') return ERROR_NO_VERSIONS
  return writeEntry(context, resolved, channel, write)
}

/** Writes an entry that was checked before. */
export const writeEntry = (
  context: MapContext,
  resolved: ResolvedMap,
  channel: string,
  write: MapWrite
): MaybePromise<MapChanged | ReplyError> => {
  context.metrics.engineAction('map_publish', resolved.namespace)
  return after(context.maps.write(channel, write, resolved.map), (changed) => {
    if (changed === 'full') return ERROR_FULL
    countChange(context, resolved, channel, changed, 'publish')
    return changed
  })
}

export const removeFromMap = (
  context: MapContext,
  resolved: ResolvedMap,
  channel: string,
  removal: MapRemoval
): MaybePromise<MapChanged | ReplyError> => {
  const invalidKey = keyError(removal.key)
  if (invalidKey !== null) return invalidKey
  context.metrics.engineAction('map_remove', resolved.namespace)
  return after(context.maps.removeKey(channel, removal, resolved.map), (changed) => {
    countChange(context, resolved, channel, changed, 'remove')
    return changed
  })
}

const countChange = (
  { metrics, activity, monotonicMs }: MapContext,
  resolved: ResolvedMap,
  channel: string,
  { suppressedBy }: MapChanged,
  change: 'publish' | 'remove'
): void => {
  const { namespace } = resolved
  if (suppressedBy !== null) {
    metrics.mapSuppressed(change, namespace, suppressedBy)
    return
  }
  metrics.messageSent(change === 'publish' ? 'map_publication' : 'map_removal', namespace)
  activity.published(channel, resolved, monotonicMs(), false)
}
