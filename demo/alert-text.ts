import type { AlertKind } from './alert-kinds.js'

// What an alert is about, in words, for the web application and for notifications.

export interface DescribedAlert {
  readonly kind: AlertKind
  readonly zoneName: string | null
  readonly floorName: string | null
  readonly buildingName: string | null
  readonly carrier: string | null
  readonly occupancy: number | null
  readonly capacity: number | null
  readonly batteryLevel: number | null
}

/** The measured value or the reason. */
export const alertDetail = ({ kind, zoneName, occupancy, capacity, batteryLevel, carrier }: DescribedAlert): string => {
  if (kind === 'restricted-zone') return `${carrier ?? 'person'} without access in ${zoneName}`
  if (kind === 'over-capacity') return `${occupancy} people, ${capacity} allowed`
  if (kind === 'battery-low') return `${Math.round(batteryLevel ?? 0)} % charge`
  return kind === 'tag-silent' ? `no signal from this ${carrier ?? 'tag'}` : 'no report'
}

export const locationOf = ({ kind, zoneName, floorName, buildingName }: DescribedAlert): string =>
  [kind === 'over-capacity' ? null : zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position'
