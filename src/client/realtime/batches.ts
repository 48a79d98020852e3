import type { AmbientBatch, AmbientEntry, PositionBatch, PositionEntry } from '../../../schemas/realtime.js'

/** What a publication holds, and how many of its entries were left out because they are none. */
export interface ReadBatch<Batch> {
  readonly batch: Batch
  readonly badEntries: number
}

/**
 * Batches come several times a second with hundreds of entries, so they are not held against their schemas: looked at is
 * what a page cannot do without. One bad entry does not hide the others.
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

/** Points in time are texts or numbers too. */
const isId = (value: unknown): boolean => (typeof value === 'string' ? value !== '' : Number.isFinite(value))

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
