import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { integer, maybe } from '../schemas/field-kinds.js'

// The kinds and severities of alerts, for the web application and the backend of the demo.

/** The kinds of alerts with their titles, the most urgent first. */
export const ALERT_TITLES = {
  'restricted-zone': 'Restricted zone',
  'over-capacity': 'Over capacity',
  'visit-overdue': 'Overdue visit',
  'receiver-offline': 'Receiver offline',
  'tag-silent': 'Silent tag',
  'battery-low': 'Low battery'
} as const
export type AlertKind = keyof typeof ALERT_TITLES

/** In ascending order: the rank of a severity is its position, starting with 1. */
export const SEVERITIES = ['info', 'warning', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]

export const SEVERITY_TITLES: Readonly<Record<Severity, string>> = {
  info: 'Information',
  warning: 'Warning',
  critical: 'Critical'
}

/** The severities of the kinds; a battery below the critical threshold has its own. */
type SeverityField = AlertKind | 'battery-critical'

const DEFAULT_SEVERITY: Readonly<Record<SeverityField, Severity>> = {
  'restricted-zone': 'critical',
  'over-capacity': 'critical',
  'visit-overdue': 'warning',
  'receiver-offline': 'warning',
  'tag-silent': 'warning',
  'battery-low': 'warning',
  'battery-critical': 'critical'
}

/** The name of the field with the minutes after which an alert of this severity escalates. */
export const escalationField = (severity: Severity): string => `${severity}EscalatesAfterMinutes`

const MAX_MINUTES = 10_080

const severity = Type.Union(SEVERITIES.map((each) => Type.Literal(each)))
const optional = (names: readonly string[], schema: TSchema): Record<string, TSchema> =>
  Object.fromEntries(names.map((name) => [name, schema]))

export const SeveritySettingsSchema = Type.Object(
  {
    ...optional(Object.keys(DEFAULT_SEVERITY), Type.Optional(severity)),
    ...optional(
      SEVERITIES.map(escalationField),
      maybe(integer(1, MAX_MINUTES, 'Minutes without acknowledgement after which an alert escalates; null for never.'))
    )
  },
  { $id: 'SeveritySettings', title: 'Severity settings', additionalProperties: false, minProperties: 1 }
)
export type SeveritySettings = Static<typeof SeveritySettingsSchema>

export const DEFAULT_SEVERITIES: SeveritySettings = {
  ...DEFAULT_SEVERITY,
  [escalationField('info')]: null,
  [escalationField('warning')]: 240,
  [escalationField('critical')]: 15
}
