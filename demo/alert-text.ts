import type { AlertKind } from './alert-kinds.js'

// The text of an alert, for the web application and for notifications.

type Fields<Names extends string, Value> = Readonly<Record<Names, Value | null>>

export interface DescribedAlert
  extends Fields<'zoneName' | 'floorName' | 'buildingName' | 'carrier' | 'company' | 'host', string>,
    Fields<'occupancy' | 'capacity' | 'batteryLevel', number> {
  readonly kind: AlertKind
}

/** The measured value or the reason. `timeText` writes a time for its readers. */
export const alertText = <Time>(
  alert: DescribedAlert & { readonly since: Time },
  timeText: (at: Time) => string
): string => {
  const { kind, zoneName, occupancy, capacity, batteryLevel, carrier, company, host, since } = alert
  if (kind === 'restricted-zone') return `${carrier ?? 'person'} without access in ${zoneName}`
  if (kind === 'over-capacity') return `${occupancy} people, ${capacity} allowed`
  if (kind === 'battery-low') return `${Math.round(batteryLevel ?? 0)} % charge`
  if (kind === 'visit-overdue')
    return [carrier, company && `from ${company}`, `expected until ${timeText(since)}`, host && `host ${host}`]
      .filter(Boolean)
      .join(', ')
  return kind === 'tag-silent' ? `no signal from this ${carrier ?? 'tag'}` : 'no report'
}

export const locationOf = ({ kind, zoneName, floorName, buildingName }: DescribedAlert): string =>
  [kind === 'over-capacity' ? null : zoneName, floorName, buildingName].filter(Boolean).join(', ') || 'No position'
