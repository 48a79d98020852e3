// The kinds and severities of alerts, for the web application and the backend of the demo.

/** The kinds of alerts with their titles, the most urgent first. */
export const ALERT_TITLES = {
  'restricted-zone': 'Restricted zone',
  'over-capacity': 'Over capacity',
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
