import { SIGNATURE_HEADER, signBody } from '../../../src/shared/webhook-signature.js'
import { type Notification, subjectOf } from './content.js'
import { connectionError, DeliveryError } from './delivery-error.js'

export interface Webhook {
  readonly url: string
  readonly secret: string
}

/** Statuses after which the same request may succeed later. */
const RETRYABLE = new Set([408, 425, 429])

/**
 * Posts a notification as signed JSON. The response is not read, so that nobody can use a channel to read pages of the internal
 * network. Redirects are not followed.
 */
export const sendWebhook = async (
  { url, secret }: Webhook,
  id: string,
  notification: Notification,
  nowMs: number,
  signal: AbortSignal
): Promise<void> => {
  const body = JSON.stringify({ id, subject: subjectOf(notification), ...notification })
  const status = await post(url, body, { [SIGNATURE_HEADER]: signBody(body, [secret], nowMs) }, signal)
  if (status >= 200 && status < 300) return
  const { host } = new URL(url)
  if (status < 400) throw new DeliveryError(`${host} redirects (status ${status}). Enter the final address.`, true)
  throw new DeliveryError(`${host} responded with status ${status}.`, status < 500 && !RETRYABLE.has(status))
}

/** Resolves to the status. */
const post = async (
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal
): Promise<number> => {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      redirect: 'manual',
      signal
    })
    await response.body?.cancel()
    return response.status
  } catch (error) {
    throw connectionError(error, new URL(url).host)
  }
}
