import { rankOf, SHOWN_ALERTS } from '../alerts/shown.js'
import { putRow } from '../records.js'
import { readSetting } from '../settings.js'
import type { Statements, World } from '../world.js'
import {
  type AlertRow,
  type Notification,
  type NotificationEvent,
  notificationOf,
  type Site,
  subjectOf
} from './content.js'

// Notifications are stored in the transaction that raises or escalates the alerts, so that none is lost; the sender sends them.

type Outbox = Pick<World, 'database' | 'newId' | 'now'>

export interface ChannelRow {
  readonly id: string
  readonly name: string
  readonly events: string
  readonly minRank: number
}

/** A channel that cannot be reached must not fill the database. */
const MAX_WAITING = 500

const CHANNELS = `SELECT id, name, coalesce(events, 'new') AS events, coalesce(${rankOf('min_severity')}, 1) AS min_rank
  FROM notification_channels WHERE is_active IS NOT FALSE ORDER BY id`

/** Open alerts that are more severe than the channels have been told. */
const UNTOLD = `SELECT * FROM ${SHOWN_ALERTS} AS shown
  WHERE state = 'open' AND severity_rank > coalesce(notified_rank, 0) ORDER BY since, id`

const MARK_TOLD = `UPDATE alerts SET notified_rank = told.rank
  FROM unnest($1::text[], $2::text[]::int[]) AS told (id, rank) WHERE told.id = alerts.id`

const DROP_OLDEST = `UPDATE deliveries SET status = 'failed', finished_at = $2, message = 'Too many notifications were waiting.'
  WHERE id IN (SELECT id FROM deliveries WHERE channel_id = $1 AND status = 'waiting' ORDER BY at DESC, id OFFSET ${MAX_WAITING})`

/** Makes waiting notifications of a channel due, or those of all e-mail channels, because their settings may be repaired. */
export const retryNow = async ({ database, now }: Pick<World, 'database' | 'now'>, channelId: string | null) => {
  await database.rows(
    `UPDATE deliveries d SET next_attempt_at = $1 FROM notification_channels c
     WHERE d.status = 'waiting' AND c.id = d.channel_id AND (c.id = $2 OR ($2::text IS NULL AND c.type = 'email'))`,
    [now(), channelId]
  )
}

export const readSite = async (world: Pick<World, 'database'>): Promise<Site> => {
  const { organizationName, timezone } = await readSetting(world, 'general')
  return { site: String(organizationName ?? ''), timeZone: String(timezone ?? 'UTC') }
}

/** Stores a notification. Returns the id of its delivery. */
export const storeDelivery = async (
  outbox: Outbox,
  channel: Pick<ChannelRow, 'id' | 'name'>,
  notification: Notification
): Promise<string> => {
  const id = outbox.newId()
  const at = outbox.now()
  await putRow(outbox, 'deliveries', {
    id,
    channelId: channel.id,
    channelName: channel.name,
    event: notification.event,
    subject: subjectOf(notification),
    content: JSON.stringify(notification),
    at,
    // Only the request that tests a channel sends its notification.
    status: notification.event === 'test' ? 'sending' : 'waiting',
    nextAttemptAt: at
  })
  await outbox.database.rows(DROP_OLDEST, [channel.id, at])
  return id
}

/**
 * Stores notifications about alerts that are new to a channel or have escalated. A channel of new alerts is notified once, when an
 * alert first has the severity of the channel.
 */
export const storeNotifications = async (outbox: Outbox, escalatedIds: readonly string[]): Promise<void> => {
  const untold = await outbox.database.rows<AlertRow>(UNTOLD)
  if (untold.length > 0) await markTold(outbox.database, untold)
  if (untold.length + escalatedIds.length === 0) return
  const channels = await outbox.database.rows<ChannelRow>(CHANNELS)
  if (channels.length === 0) return
  const escalated = await outbox.database.rows<AlertRow>(
    `SELECT * FROM ${SHOWN_ALERTS} AS shown WHERE id = ANY($1::text[]) ORDER BY since, id`,
    [escalatedIds]
  )
  const site = await readSite(outbox)
  for (const channel of channels) {
    const store = async (event: NotificationEvent, alerts: readonly AlertRow[]): Promise<void> => {
      if (alerts.length > 0) await storeDelivery(outbox, channel, notificationOf(site, event, alerts))
    }
    const isSevere = ({ severityRank }: AlertRow): boolean => severityRank >= channel.minRank
    if (channel.events === 'escalated') await store('escalated', escalated.filter(isSevere))
    else
      await store(
        'raised',
        untold.filter((alert) => isSevere(alert) && (alert.notifiedRank ?? 0) < channel.minRank)
      )
  }
}

const markTold = (database: Statements, alerts: readonly AlertRow[]): Promise<unknown> =>
  database.rows(MARK_TOLD, [alerts.map(({ id }) => id), alerts.map(({ severityRank }) => String(severityRank))])
