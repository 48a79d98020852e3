import { SIGNATURE_HEADER, signatureError } from '../shared/webhook-signature.js'

/** Headers of a `Request`, or those of a Node.js or Express request. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Whether the relay has signed the body with one of the secrets within the last five minutes. `body` must be the bytes that
 * arrived: JSON that was parsed and written again has another signature.
 */
export const verifyWebhook = (
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: readonly string[],
  nowMs = Date.now()
): boolean => signatureError(signatureOf(headers), body, secrets, nowMs) === null

const signatureOf = (headers: WebhookHeaders): string | null => {
  if (headers instanceof Headers) return headers.get(SIGNATURE_HEADER)
  const name = SIGNATURE_HEADER.toLowerCase()
  const values = Object.keys(headers).filter((each) => each.toLowerCase() === name)
  const value = headers[values[0] ?? '']
  return values.length === 1 && typeof value === 'string' ? value : null
}
