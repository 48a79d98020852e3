import type { Logger } from 'pino'
import { RepeatedCheck } from '../repeated-check.js'
import type { World } from '../world.js'
import type { Notification } from './content.js'
import { DeliveryError } from './delivery-error.js'
import { mailSettings } from './mail-server.js'
import { SEND_TIMEOUT_MS, sendMail } from './send-mail.js'
import { sendWebhook } from './send-webhook.js'

const FIRST_DELAY_MS = 5000
const MAX_DELAY_MS = 5 * 60_000
/** Older notifications are no longer sent. */
const GIVE_UP = "interval '24 hours'"

interface Delivery {
  readonly id: string
  readonly content: Notification
  readonly attempts: number
  readonly type: string
  readonly url: string | null
  readonly recipients: readonly string[] | null
  readonly secret: string | null
}

export interface DeliveryResult {
  readonly status: 'sent' | 'failed' | 'waiting'
  readonly message: string | null
}

const DELIVERY = `SELECT d.id, d.content, d.attempts, c.type, c.url, c.recipients, s.secret
  FROM deliveries d JOIN notification_channels c ON c.id = d.channel_id LEFT JOIN channel_secrets s ON s.channel_id = c.id`

/** The channels whose oldest notification is due. Later ones wait behind it. */
const DUE = `SELECT channel_id FROM (SELECT DISTINCT ON (d.channel_id) d.channel_id, d.next_attempt_at FROM deliveries d
    JOIN notification_channels c ON c.id = d.channel_id AND c.is_active IS NOT FALSE
    WHERE d.status = 'waiting' ORDER BY d.channel_id, d.at, d.id) AS oldest WHERE next_attempt_at <= $1`

const RECORD = `UPDATE deliveries SET status = $2, message = $3, attempts = attempts + 1, next_attempt_at = $4,
  finished_at = CASE WHEN $2 <> 'waiting' THEN $5::timestamptz END WHERE id = $1`

const EXPIRE = `UPDATE deliveries SET status = 'failed', finished_at = $1::timestamptz,
    message = concat_ws(' ', 'Not delivered within 24 hours.', message)
  WHERE status = 'waiting' AND at <= $1::timestamptz - ${GIVE_UP}`

const INTERRUPTED = `UPDATE deliveries SET status = 'failed', finished_at = $1, message = 'The backend was restarted.'
  WHERE status = 'sending'`

/**
 * Sends stored notifications. Each channel has its own queue, so that one that does not respond delays no other, and no check of the
 * alert monitor. A notification is stored as sent after the other server has accepted it: after a crash it is sent again.
 */
export class NotificationSender extends RepeatedCheck {
  readonly #world: Pick<World, 'database' | 'now'>
  readonly #log: Logger
  readonly #stopping = new AbortController()
  /** By channel. */
  readonly #queues = new Map<string, Promise<void>>()

  constructor(world: Pick<World, 'database' | 'now'>, log: Logger) {
    super('sending notifications failed', log)
    this.#world = world
    this.#log = log
  }

  override async stop(): Promise<void> {
    this.#stopping.abort(new Error('the backend is stopping'))
    await super.stop()
    await this.settled()
  }

  /** Tests that did not end before a restart have no result. */
  async failInterruptedTests(): Promise<void> {
    await this.#world.database.rows(INTERRUPTED, [this.#world.now()])
  }

  /** Resolves when nothing is being sent. */
  async settled(): Promise<void> {
    await Promise.all(this.#queues.values())
  }

  /** Makes the only attempt to send a test. */
  async sendTest(id: string): Promise<DeliveryResult> {
    const [delivery] = await this.#world.database.rows<Delivery>(`${DELIVERY} WHERE d.id = $1`, [id])
    if (delivery === undefined) return { status: 'failed', message: 'The channel has been deleted.' }
    return this.#attempt(delivery, true)
  }

  protected override async update(): Promise<void> {
    const { database, now } = this.#world
    const at = now()
    await database.rows(EXPIRE, [at])
    for (const { channelId } of await database.rows<{ channelId: string }>(DUE, [at])) {
      if (this.#queues.has(channelId)) continue
      const queue = this.#sendAll(channelId)
        .catch((error: unknown) => this.#log.error({ err: error, channelId }, 'sending notifications failed'))
        .finally(() => this.#queues.delete(channelId))
      this.#queues.set(channelId, queue)
    }
  }

  /** Sends the waiting notifications of a channel in their order, until one fails. */
  async #sendAll(channelId: string): Promise<void> {
    const { database } = this.#world
    while (!this.#stopping.signal.aborted) {
      const [next] = await database.rows<Delivery>(
        `${DELIVERY} WHERE d.channel_id = $1 AND d.status = 'waiting' ORDER BY d.at, d.id LIMIT 1`,
        [channelId]
      )
      if (next === undefined || (await this.#attempt(next, false)).status === 'waiting') return
    }
  }

  async #attempt(delivery: Delivery, isOnlyOne: boolean): Promise<DeliveryResult> {
    const { database, now } = this.#world
    const result = await this.#send(delivery, isOnlyOne)
    // Stopping is no failed attempt. The notification is sent after the next start.
    if (result.status !== 'sent' && this.#stopping.signal.aborted) return result
    const delayMs = Math.min(FIRST_DELAY_MS * 3 ** Math.min(delivery.attempts, 10), MAX_DELAY_MS)
    const nextAt = new Date(now().getTime() + delayMs)
    await database.rows(RECORD, [delivery.id, result.status, result.message, nextAt, now()])
    return result
  }

  async #send({ id, content, type, url, recipients, secret }: Delivery, isOnlyOne: boolean): Promise<DeliveryResult> {
    const signal = AbortSignal.any([AbortSignal.timeout(SEND_TIMEOUT_MS), this.#stopping.signal])
    try {
      if (type === 'email') {
        const server = await mailSettings(this.#world)
        return { status: 'sent', message: await sendMail(server, recipients ?? [], id, content, signal) }
      }
      await sendWebhook({ url: url ?? '', secret: secret ?? '' }, id, content, this.#world.now().getTime(), signal)
      return { status: 'sent', message: null }
    } catch (error) {
      if (!(error instanceof DeliveryError)) this.#log.error({ err: error, deliveryId: id }, 'notification failed')
      const { message, isFinal } =
        error instanceof DeliveryError ? error : new DeliveryError('An internal error occurred.')
      return { status: isFinal || isOnlyOne ? 'failed' : 'waiting', message }
    }
  }
}
