import { ALERT_TITLES, SEVERITY_TITLES, type Severity } from '../../alert-kinds.js'
import { alertText, type DescribedAlert, locationOf } from '../../alert-text.js'
import { timeText } from '../export/time-text.js'

export type NotificationEvent = 'raised' | 'escalated' | 'test'

/** An alert as the monitor reads it. */
export interface AlertRow extends DescribedAlert {
  readonly id: string
  readonly name: string
  readonly severity: Severity
  readonly severityRank: number
  readonly notifiedRank: number | null
  readonly since: Date
}

/** One alert in a notification. */
interface NotifiedAlert
  extends Readonly<Record<'id' | 'kind' | 'title' | 'name' | 'detail' | 'place' | 'since', string>> {
  readonly severity: Severity
}

/** The content of a notification, as the outbox stores it. */
export interface Notification {
  readonly event: NotificationEvent
  readonly site: string
  readonly timeZone: string
  /** The most severe alerts, at most `MAX_ALERTS`. */
  readonly alerts: readonly NotifiedAlert[]
  /** The number of alerts, including those that are left out. */
  readonly total: number
}

export interface Site {
  readonly site: string
  readonly timeZone: string
}

/** A failure of many receivers must not make a message of any size. */
const MAX_ALERTS = 50

export const testNotification = (site: Site): Notification => ({ ...site, event: 'test', alerts: [], total: 0 })

export const notificationOf = (site: Site, event: NotificationEvent, rows: readonly AlertRow[]): Notification => {
  const sorted = rows.toSorted((a, b) => b.severityRank - a.severityRank)
  const alerts = sorted.slice(0, MAX_ALERTS).map((alert) => ({
    id: alert.id,
    kind: alert.kind,
    title: ALERT_TITLES[alert.kind] ?? alert.kind,
    severity: alert.severity,
    name: alert.name,
    detail: alertText(alert, (at) => timeText(at, site.timeZone)),
    place: locationOf(alert),
    since: alert.since.toISOString()
  }))
  return { ...site, event, alerts, total: rows.length }
}

/** "Escalated: Critical: Restricted zone: Ada Example (visitor without access in Server Room) and 2 more". */
export const subjectOf = ({ event, alerts, total }: Notification): string => {
  const [first] = alerts
  if (first === undefined) return 'Test notification'
  const what = `${SEVERITY_TITLES[first.severity]}: ${first.title}: ${first.name} (${first.detail})`
  const more = total > 1 ? ` and ${total - 1} more` : ''
  return `${event === 'escalated' ? 'Escalated: ' : ''}${what}${more}`.replace(/\s+/g, ' ')
}

/** The text of an e-mail. */
export const textOf = (notification: Notification): string => {
  const { event, site, timeZone, alerts, total } = notification
  if (event === 'test') return `This is a test of the notification channel, sent by ${site}.\n`
  const intro = event === 'escalated' ? `Nobody has acknowledged in time at ${site}:` : `Needs attention at ${site}:`
  const entries = alerts.map(({ severity, title, name, detail, place, since }) =>
    [
      `${SEVERITY_TITLES[severity]}: ${title}: ${name}`,
      `  ${detail}`,
      `  Place: ${place}`,
      `  Since: ${timeText(new Date(since), timeZone)}`
    ].join('\n')
  )
  const omitted = total > alerts.length ? [`… and ${total - alerts.length} more.`] : []
  return `${[intro, ...entries, ...omitted].join('\n\n')}\n`
}
