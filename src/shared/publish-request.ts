import type { Dispatcher, Pool } from 'undici'
import { errorCode } from './error-code.js'
import { jsonOrUndefined } from './json-or-undefined.js'

/** The outcome of one request. Null: the relay has accepted everything. */
export type PublishFailure = {
  /** A short constant or code for logs. */
  readonly reason: string
  /** Whether the same request may succeed later. It may have been executed. */
  readonly isTemporary: boolean
  /** Indexes of the rejected channels of a broadcast; null if all were rejected or no response arrived. */
  readonly rejected: readonly number[] | null
} | null

/** Sends one request to the publish API. Never rejects. */
export const sendRequest = async (
  pool: Pool,
  request: Pick<Dispatcher.RequestOptions, 'path' | 'headers' | 'body'>,
  timeoutMs: number
): Promise<PublishFailure> => {
  try {
    const signal = AbortSignal.timeout(Math.ceil(timeoutMs))
    const { statusCode, body } = await pool.request({ ...request, method: 'POST', signal })
    const text = await body.text()
    return statusCode === 200 ? rejectionIn(text) : errorIn(text, statusCode)
  } catch (error) {
    return failureOf(error)
  }
}

/** Error 100 of the relay: its engine is unavailable, or has not confirmed the publication in time. */
const INTERNAL_ERROR = 100

const TEMPORARY_STATUSES: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** Errors of the network. Others, such as a certificate that is not trusted, do not end by themselves within seconds. */
const TEMPORARY_ERRORS: ReadonlySet<string> = new Set([
  'timeout',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH'
])

const permanent = (reason: string): PublishFailure => ({ reason, isTemporary: false, rejected: null })

/** A rejected publication has an error status, and the code in its body. */
const errorIn = (text: string, statusCode: number): PublishFailure => {
  const reason = relayCode(text)
  return {
    reason: reason === null ? `status ${statusCode}` : `relay error ${reason}`,
    isTemporary: TEMPORARY_STATUSES.has(statusCode),
    rejected: null
  }
}

const relayCode = (text: string): number | null => {
  const { code } = Object(jsonOrUndefined(text))
  return typeof code === 'number' ? code : null
}

/** A broadcast has the status 200 also if some channels were rejected. */
const rejectionIn = (text: string): PublishFailure => {
  try {
    const { error, result } = JSON.parse(text)
    if (error) return { ...rejection([error.code]), rejected: null }
    if (result === undefined) return permanent('not a response of the relay')
    const codes: readonly unknown[] = (result.responses ?? []).map(
      (each: { error?: { code: unknown } }) => each.error?.code
    )
    const rejected = codes.flatMap((code, index) => (code === undefined ? [] : [index]))
    return rejected.length === 0 ? null : { ...rejection(rejected.map((index) => codes[index])), rejected }
  } catch {
    return permanent('not a response of the relay')
  }
}

/** Channels that were accepted, or rejected for good, get the same answer if the broadcast is repeated. */
const rejection = (codes: readonly unknown[]): { reason: string; isTemporary: boolean } => ({
  reason: `relay error ${Number(codes[0])}`,
  isTemporary: codes.includes(INTERNAL_ERROR)
})

const failureOf = (error: unknown): PublishFailure => {
  const isTimeout = error instanceof Error && error.name === 'TimeoutError'
  const reason = isTimeout ? 'timeout' : errorCode(error) || 'unknown'
  return { reason, isTemporary: TEMPORARY_ERRORS.has(reason), rejected: null }
}
