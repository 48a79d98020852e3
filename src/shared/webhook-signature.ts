import { createHmac, timingSafeEqual } from 'node:crypto'

/** Header of the signature: `t=<seconds since 1970>,v1=<hex>`, with one `v1` for each secret. */
export const SIGNATURE_HEADER = 'X-Gatehouse-Signature'

/** How far the time of a signature may differ from the clock of the receiver. */
const MAX_AGE_SECONDS = 300

const digest = (secret: string, timestamp: string, body: string | Uint8Array): Buffer =>
  createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest()

/** The value of the header. `secrets` has the current secret and, during a rotation, the previous one. */
export const signBody = (body: string | Uint8Array, secrets: readonly string[], nowMs: number): string => {
  const timestamp = String(Math.floor(nowMs / 1000))
  return [`t=${timestamp}`, ...secrets.map((secret) => `v1=${digest(secret, timestamp, body).toString('hex')}`)].join(
    ','
  )
}

export type SignatureError = 'missing' | 'malformed' | 'expired' | 'mismatch'

/** Null if one of the signatures was made with one of the secrets, and recently. */
export const signatureError = (
  header: string | null | undefined,
  body: string | Uint8Array,
  secrets: readonly string[],
  nowMs: number
): SignatureError | null => {
  if (header === null || header === undefined || header === '') return 'missing'
  const parsed = /^t=(\d{1,12})((?:,v1=[0-9a-f]{64}){1,4})$/.exec(header)
  const [, timestamp = '', signatures = ''] = parsed ?? []
  if (parsed === null) return 'malformed'
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > MAX_AGE_SECONDS) return 'expired'
  const received = signatures.split(',v1=').slice(1)
  for (const secret of secrets) {
    if (secret === '') continue
    const expected = digest(secret, timestamp, body)
    if (received.some((each) => timingSafeEqual(Buffer.from(each, 'hex'), expected))) return null
  }
  return 'mismatch'
}
