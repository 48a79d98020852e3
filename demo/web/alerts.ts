import type { Place } from './live-link.js'
import type { Alert, AlertCount } from './types.js'

/** Null without a position. */
export const alertPlace = ({ kind, floorId, transmitterId, receiverId, zoneId }: Alert): Place | null => {
  if (floorId === null) return null
  return kind === 'over-capacity' ? { floorId, zoneId } : { floorId, transmitterId, receiverId }
}

/** The counts in a publication; null if it is another one. */
export const alertCountsIn = ({
  type,
  data
}: {
  readonly type: string
  readonly data?: unknown
}): readonly AlertCount[] | null => (type === 'alerts' && Array.isArray(data) && data.every(isAlertCount) ? data : null)

const isAlertCount = (entry: unknown): entry is AlertCount =>
  typeof entry === 'object' && entry !== null && 'open' in entry && typeof entry.open === 'number' && 'kind' in entry

/** Who has acknowledged the alert, or that nobody has done so in time. */
export const alertState = (
  { acknowledgedBy, acknowledgedAt, escalatedAt }: Pick<Alert, 'acknowledgedBy' | 'acknowledgedAt' | 'escalatedAt'>,
  timeText: (at: string | null) => string
): string => {
  const escalation = escalatedAt === null ? '' : `, escalated at ${timeText(escalatedAt)}`
  return acknowledgedBy === null
    ? `Open${escalation}`
    : `Acknowledged by ${acknowledgedBy}, ${timeText(acknowledgedAt)}${escalation}`
}
