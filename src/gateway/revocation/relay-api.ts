import { request } from 'undici'
import { readBounded } from '../../shared/bounded-body.js'
import { isObject } from '../../shared/is-object.js'

/** The relay's server API. */
export interface RelayApiConfig {
  /** With its path, usually `/api`. */
  readonly url: string
  readonly key: string
}

const TIMEOUT_MS = 3_000
const MAX_RESPONSE_BYTES = 64 * 1024

/** Closes the connections of a user and rejects their tokens from this time or before. Rejects if the relay does not confirm it. */
export const invalidateUserTokens = async (
  { url, key }: RelayApiConfig,
  user: string,
  issuedBeforeMs: number
): Promise<void> => {
  const { statusCode, body } = await request(`${url.replace(/\/$/, '')}/invalidate_user_tokens`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify({ user, issued_before: Math.floor(issuedBeforeMs / 1000) }),
    signal: AbortSignal.timeout(TIMEOUT_MS)
  })
  const text = (await readBounded(body, MAX_RESPONSE_BYTES)).toString()
  if (statusCode !== 200) throw new Error(`status ${statusCode}`)
  const reply: unknown = JSON.parse(text)
  // The relay reports errors with status 200.
  if (!isObject(reply) || reply.error !== undefined) throw new Error('the relay rejected the request')
}
