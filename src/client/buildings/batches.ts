import type { AmbientBatch, AmbientEntry, PositionBatch, PositionEntry } from '../../../schemas/realtime.js'
import { fieldsOf } from '../fields-of.js'

/** A parsed publication, and the number of malformed entries that were dropped. */
export interface ReadBatch<Batch> {
  readonly batch: Batch
  readonly badEntries: number
}

/**
 * Parses a publication. Batches arrive several times a second with hundreds of entries, so only the fields that web
 * applications need are checked. Malformed entries are dropped individually.
 */
export const readBatch = (payload: unknown): ReadBatch<PositionBatch | AmbientBatch> | null => {
  const { type, data } = fieldsOf(payload)
  if (!Array.isArray(data)) return null
  if (type === 'position-batch') {
    const entries = data.filter(isPosition)
    return { batch: { type, data: entries }, badEntries: data.length - entries.length }
  }
  if (type === 'ambient-batch') {
    const entries = data.filter(isAmbient)
    return { batch: { type, data: entries }, badEntries: data.length - entries.length }
  }
  return null
}

const BATCH_TYPES: readonly unknown[] = ['position-batch', 'ambient-batch']

/** A publication of the application: an object with a `type` that is not one of the batches. */
export interface OtherPublication {
  readonly type: string
  readonly [field: string]: unknown
}

export const isOtherPublication = (payload: unknown): payload is OtherPublication => {
  const { type } = fieldsOf(payload)
  return typeof type === 'string' && type !== '' && !BATCH_TYPES.includes(type)
}

const isPosition = (entry: unknown): entry is PositionEntry => {
  const { transmitterId, position, positionMethod, floorId } = fieldsOf(entry)
  const { x, y } = fieldsOf(position)
  return (
    isId(transmitterId) &&
    Number.isFinite(x) &&
    Number.isFinite(y) &&
    typeof positionMethod === 'string' &&
    isId(floorId)
  )
}

const isAmbient = (entry: unknown): entry is AmbientEntry => {
  const { deviceId, deviceType, receiverId, rssi, timestamp } = fieldsOf(entry)
  return (
    isId(deviceId) && typeof deviceType === 'string' && isId(receiverId) && Number.isFinite(rssi) && isId(timestamp)
  )
}

/** Also used for timestamps, which are texts or numbers too. */
const isId = (value: unknown): boolean => (typeof value === 'string' ? value !== '' : Number.isFinite(value))
