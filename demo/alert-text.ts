import type { AlertKind } from './alert-kinds.js'

// The text of an alert.

type Fields<Names extends string, Value> = Readonly<Record<Names, Value | null>>

export interface DescribedAlert
  extends Fields<'zoneName' | 'floorName' | 'buildingName' | 'carrier', string>,
    Fields<'occupancy' | 'capacity' | 'batteryLevel', number> {
  readonly kind: AlertKind
}

/** The measured value or the reason. */
export const alertText = ({ kind, zoneName, occupancy, capacity, batteryLevel, carrier }: DescribedAlert): string => {
  if (kind === 'restricted-zone') return `${carrier ?? 'person'} without access in ${zoneName}`
  if (kind === 'over-capacity') return `${occupancy} people, ${capacity} allowed`
  if (kind === 'battery-low') return `${Math.round(batteryLevel ?? 0)} % charge`
  return kind === 'tag-silent' ? `no signal from this ${carrier ?? 'tag'}` : 'no report'
}

export const locationOf = ({ kind, zoneName, floorName, buildingName }: DescribedAlert): string =>
  [kind === 'over-capacity' ? null : zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position'
