import type { RouteLocationRaw } from 'vue-router'
import { dateTimeText } from '../../src/ui/format.js'
import type { Place } from './live-link.js'
import type { Alert, AlertCount, AlertKind } from './types.js'

/** The kinds of alerts with their titles, the most urgent first. */
export const ALERT_TITLES: Readonly<Record<AlertKind, string>> = {
  'restricted-zone': 'Restricted zone',
  'over-capacity': 'Over capacity',
  'visit-overdue': 'Overdue visit',
  'receiver-offline': 'Receiver offline',
  'tag-silent': 'Silent tag',
  'battery-low': 'Low battery'
}

/** The measured value or the reason. */
export const alertDetail = (alert: Alert): string => {
  const { kind, zoneName, occupancy, capacity, batteryLevel, carrier, company, host, since } = alert
  if (kind === 'restricted-zone') return `${carrier ?? 'person'} without access in ${zoneName}`
  if (kind === 'over-capacity') return `${occupancy} people, ${capacity} allowed`
  if (kind === 'battery-low') return `${Math.round(batteryLevel ?? 0)} % charge`
  if (kind === 'visit-overdue')
    return [carrier, company && `from ${company}`, `expected until ${dateTimeText(since)}`, host && `host ${host}`]
      .filter(Boolean)
      .join(', ')
  return kind === 'tag-silent' ? `no signal from this ${carrier ?? 'tag'}` : 'no report'
}

/** The record of the visit that an alert is about; null for other alerts. */
export const alertVisit = ({ kind, name }: Alert): RouteLocationRaw | null =>
  kind === 'visit-overdue' ? { path: '/visits', query: { status: 'overdue', search: name } } : null

/** Null without a position. */
export const alertPlace = ({ kind, floorId, transmitterId, receiverId, zoneId }: Alert): Place | null => {
  if (floorId === null) return null
  return kind === 'over-capacity' ? { floorId, zoneId } : { floorId, transmitterId, receiverId }
}

export const locationOf = ({ kind, zoneName, floorName, buildingName }: Alert): string =>
  [kind === 'over-capacity' ? null : zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position'

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
