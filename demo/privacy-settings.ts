import { type Static, Type } from '@sinclair/typebox'
import { integer } from '../schemas/field-kinds.js'

// How long personal data is stored, for the web application and the backend of the demo.

export const PrivacySettingsSchema = Type.Object(
  {
    positionHistoryDays: Type.Optional(
      integer(1, 365, 'Positions of people and assets are deleted after this time. The latest position stays.')
    ),
    auditDays: Type.Optional(
      integer(30, 3650, 'Audit entries are deleted after this time, also those in reports of emergencies.')
    )
  },
  { $id: 'PrivacySettings', title: 'Privacy settings', additionalProperties: false, minProperties: 1 }
)
export type PrivacySettings = Required<Static<typeof PrivacySettingsSchema>>

/** As the backend reports it. */
export interface Retention extends PrivacySettings {
  /** The embedded database is in memory and keeps positions for this time only; null for PostgreSQL. */
  readonly maxPositionHours: number | null
}

/** How long positions are kept, such as "7 days". */
export const positionRetention = ({ positionHistoryDays: days, maxPositionHours }: Retention): string => {
  if (maxPositionHours !== null && maxPositionHours < days * 24) return `${maxPositionHours} hours`
  return days === 1 ? '1 day' : `${days} days`
}

export const DEFAULT_PRIVACY: PrivacySettings = { positionHistoryDays: 7, auditDays: 365 }
