import { createTransport } from 'nodemailer'
import type { MailServer } from '../../notification-channels.js'
import { type Notification, subjectOf, textOf } from './content.js'
import { connectionError, DeliveryError } from './delivery-error.js'

export interface MailSettings extends MailServer {
  readonly password?: string | null
}

export const SEND_TIMEOUT_MS = 15_000

const transportOf = ({ host, port, security, user, password, certificate }: MailSettings) =>
  createTransport({
    host: host ?? '',
    port: port ?? 587,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(user && { auth: { user, pass: password ?? '' } }),
    ...(certificate && { tls: { ca: certificate } }),
    connectionTimeout: SEND_TIMEOUT_MS,
    greetingTimeout: SEND_TIMEOUT_MS,
    socketTimeout: SEND_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true
  })

/** Sends a notification. Resolves to a remark about recipients that the server has rejected, or null. */
export const sendMail = async (
  server: MailSettings,
  recipients: readonly string[],
  id: string,
  notification: Notification,
  signal: AbortSignal
): Promise<string | null> => {
  const { host, sender } = server
  if (!host || !sender) throw new DeliveryError('The mail server is not set up: host and sender are missing.')
  const transport = transportOf(server)
  try {
    const sent = await withinSignal(
      transport.sendMail({
        from: sender,
        // As objects, which are not parsed for further addresses.
        to: recipients.map((address) => ({ name: '', address })),
        subject: `[${notification.site}] ${subjectOf(notification)}`,
        text: textOf(notification),
        // The same for every attempt, so that mail programs recognise a repetition.
        messageId: `<${id}@gatehouse.invalid>`
      }),
      signal
    )
    return sent.rejected.length > 0 ? `The mail server rejected ${sent.rejected.join(', ')}.` : null
  } catch (error) {
    throw mailError(error, `${host}:${server.port}`)
  } finally {
    transport.close()
  }
}

/** A server that sends a byte now and then would never reach a timeout. */
const withinSignal = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  Promise.race([
    work,
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason)
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  ])

/** Only the status of the server's response is reported, not its text. */
const mailError = (error: unknown, host: string): DeliveryError => {
  // Errors of nodemailer have these fields.
  const { code, responseCode, message = '' } = error as { code?: string; responseCode?: number; message?: string }
  const status = responseCode === undefined ? '' : ` (status ${responseCode})`
  if (code === 'EAUTH') return new DeliveryError(`${host} rejected the user name or the password${status}.`)
  if (code === 'EENVELOPE')
    return new DeliveryError(`${host} rejected the sender or all recipients${status}.`, (responseCode ?? 0) >= 500)
  if (code === 'ETLS' && !/certificate|altname/i.test(message))
    return new DeliveryError(`${host} does not offer STARTTLS${status}.`)
  if (responseCode !== undefined)
    return new DeliveryError(`${host} rejected the message${status}.`, responseCode >= 500)
  return connectionError(error, host)
}
