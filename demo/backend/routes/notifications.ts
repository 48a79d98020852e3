import { isMailAddress } from '../../notification-channels.js'
import { crud, labelOf } from '../crud.js'
import { HttpError, invalid } from '../errors.js'
import { testNotification } from '../notifications/content.js'
import { changeMailServer, readMailServer } from '../notifications/mail-server.js'
import { readSite, retryNow, storeDelivery } from '../notifications/outbox.js'
import { list } from '../queries.js'
import { getRecord, putRow } from '../records.js'
import { notificationChannels } from '../resources.js'
import { type Call, type CustomReply, type Handlers, handler, idOf, perMinute, type Run } from '../route.js'
import type { Fields } from '../world.js'

const deliveries = {
  from: 'deliveries',
  fields: ['at', 'channelId', 'channelName', 'event', 'subject', 'status', 'attempts', 'nextAttemptAt', 'finishedAt'],
  search: ['subject', 'channelName', 'message'],
  order: 'at DESC, id'
}

/** The secret is stored in its own table. */
const withoutSecret = ({ body: { secret: _secret, ...channel }, request }: Call): Fields => ({
  ...(request.method === 'POST' && { isActive: true, events: 'new', minSeverity: 'info' }),
  ...channel
})

const checkChannel = async (call: Call, id: string): Promise<void> => {
  const { secret } = call.body
  if (typeof secret === 'string') await putRow(call, 'channel_secrets', { channelId: id, secret }, 'channel_id')
  const { type, url, recipients, hasSecret } = await getRecord(call, notificationChannels, id)
  await retryNow(call, id)
  const path = type === 'email' ? '/recipients' : '/url'
  const message = type === 'email' ? recipientsError(recipients) : urlError(url)
  if (message !== null) throw invalid([{ path, message }])
  if (type === 'email') return
  if (hasSecret !== true) throw invalid([{ path: '/secret', message: 'is required, because requests are signed' }])
}

const recipientsError = (recipients: unknown): string | null => {
  if (!Array.isArray(recipients) || recipients.length === 0) return 'must contain at least one address'
  const wrong = recipients.find((recipient) => !isMailAddress(String(recipient)))
  return wrong === undefined ? null : `must contain e-mail addresses only: “${wrong}” is none`
}

const urlError = (url: unknown): string | null => {
  const text = String(url ?? '')
  if (!URL.canParse(text) || !/^https?:/i.test(text)) return 'must be an http or https address'
  const { username, password } = new URL(text)
  return username !== '' || password !== '' ? 'must not contain a user name or a password' : null
}

/** Notifications that wait for a deleted channel have no recipient any more. */
const failWaiting = async ({ database, now }: Call): Promise<void> => {
  await database.rows(
    `UPDATE deliveries SET status = 'failed', finished_at = $1, message = 'The channel has been deleted.'
     WHERE channel_id IS NULL AND status IN ('waiting', 'sending')`,
    [now()]
  )
}

/** Sends after the transaction, which must not be open while another server takes its time. */
const sendTest: Run = async (call) => {
  const channel = await getRecord(call, notificationChannels, idOf(call))
  const named = { id: idOf(call), name: String(channel.name) }
  const delivery = await storeDelivery(call, named, testNotification(await readSite(call)))
  call.subjects.push(labelOf(notificationChannels, channel))
  const reply: CustomReply = async () => {
    const result = await call.notifications.sendTest(delivery)
    if (result.status !== 'sent')
      throw new HttpError(422, 'DELIVERY_FAILED', `The test was not delivered: ${result.message}`)
    return { success: true, data: result }
  }
  return reply
}

/** Notification channels, the mail server, and the record of deliveries. */
export const notificationRoutes: Handlers = {
  ...crud(notificationChannels, { prepare: withoutSecret, stored: checkChannel, removed: failWaiting }),
  'POST /api/notifications/channels/:id/test': handler('settings.update', sendTest, perMinute(20)),
  'GET /api/notifications/deliveries': handler('settings.update', list(deliveries)),
  'GET /api/notifications/mail-server': handler('settings.update', readMailServer),
  'PATCH /api/notifications/mail-server': handler('settings.update', changeMailServer)
}
