import { ALERT_TITLES, escalationField, SEVERITIES } from '../../alert-kinds.js'
import { wordsOf } from '../field-words.js'
import type { FieldChange } from './entry.js'

/** Settings and fields whose names in the API do not say enough. */
const LABELS: Readonly<Record<string, string>> = {
  'battery.warning': 'battery warning threshold',
  'battery.low': 'battery threshold',
  'battery.critical': 'critical battery threshold',
  'privacy.positionHistoryDays': 'time after which positions are deleted',
  'privacy.auditDays': 'time after which audit entries are deleted',
  'general.organizationName': 'name of the organisation',
  'general.sessionTimeoutMinutes': 'session timeout',
  'alerts.enabled': 'alerts',
  'alerts.zoneBreach': 'alerts about people in restricted zones',
  'alerts.zoneOverCapacity': 'alerts about zones over capacity',
  'alerts.receiverOffline': 'alerts about offline receivers',
  'alerts.transmitterSilent': 'alerts about silent tags',
  'alerts.batteryLow': 'alerts about low batteries',
  'alerts.offlineAfterMinutes': 'time after which a receiver is offline',
  'alerts.silentAfterMinutes': 'time after which a tag is silent',
  ...Object.fromEntries(
    Object.entries(ALERT_TITLES).map(([kind, title]) => [`severities.${kind}`, `severity of alerts about: ${title}`])
  ),
  'severities.battery-critical': 'severity of alerts about: battery below the critical threshold',
  ...Object.fromEntries(
    SEVERITIES.map((severity) => [
      `severities.${escalationField(severity)}`,
      `time after which alerts of the severity ${severity} escalate`
    ])
  ),
  polygon: 'area',
  entity_type: 'kind of carrier',
  entityId: 'carrier'
}

const UNIT_WORDS: Readonly<Record<string, string>> = {
  Ms: 'ms',
  Seconds: 's',
  Minutes: 'minutes',
  Hours: 'hours',
  Days: 'days'
}
const UNIT = /(Ms|Seconds|Minutes|Hours|Days)$/
const UNITS: Readonly<Record<string, string>> = {
  batteryLevel: '%',
  width: 'm',
  height: 'm',
  'battery.staleAfterHours': 'hours'
}

/** "the battery threshold"; a setting without a label of its own names its group. */
export const labelOf = ({ field }: FieldChange): string => {
  const known = LABELS[field]
  if (known !== undefined) return known
  const [group, name] = field.includes('.') ? field.split('.', 2) : ['', field]
  const words = wordsOf(name?.replace(UNIT, '') ?? '')
  return group ? `${words} (${group} settings)` : words
}

const unitOf = (field: string): string => {
  const suffix = UNIT.exec(field)?.[1]
  return UNITS[field] ?? (suffix ? (UNIT_WORDS[suffix] ?? '') : field.startsWith('battery.') ? '%' : '')
}

export const valueText = (field: string, value: unknown): string => {
  if (value === null || value === undefined || value === '') return 'nothing'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value !== 'number') return `“${value}”`
  const unit = unitOf(field)
  // "1 days" is not English.
  return [value, value === 1 ? unit.replace(/(minute|hour|day)s$/, '$1') : unit].filter((part) => part !== '').join(' ')
}

/** "from 20 % to 15 %"; empty if the values are not shown. */
export const valuesText = ({ field, before, after }: FieldChange): string => {
  if (before === undefined && after === undefined) return ''
  if (before === undefined) return `to ${valueText(field, after)}`
  return `from ${valueText(field, before)} to ${valueText(field, after)}`
}

/** Whether a flag was switched: "on", "off", or null for another change. */
export const switchedTo = ({ before, after }: FieldChange): 'on' | 'off' | null => {
  if (after === true && before !== true) return 'on'
  return after === false && before === true ? 'off' : null
}
