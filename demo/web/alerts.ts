import type { RouteLocationRaw } from 'vue-router'
import { capitalized, dateTimeText } from '../../src/ui/format.js'
import { alertText } from '../alert-text.js'
import type { Place } from './live-link.js'
import type { Alert, AlertCount } from './types.js'

/** The measured value or the reason. */
export const alertDetail = (alert: Alert): string => capitalized(alertText(alert, dateTimeText))

/** The record of the visit that an alert is about; null for other alerts. */
export const alertVisit = ({ kind, name }: Alert): RouteLocationRaw | null =>
  kind === 'visit-overdue' ? { path: '/visits', query: { status: 'overdue', search: name } } : null

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

/** The user who has acknowledged the alert, and the time of its escalation if it was not acknowledged in time. */
export const alertState = ({ acknowledgedBy, acknowledgedAt, escalatedAt }: Alert): string => {
  const escalation = escalatedAt === null ? '' : `, escalated at ${dateTimeText(escalatedAt)}`
  return acknowledgedBy === null
    ? `Open${escalation}`
    : `Acknowledged by ${acknowledgedBy}, ${dateTimeText(acknowledgedAt)}${escalation}`
}
