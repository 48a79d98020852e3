import type { UserDetails } from '../../shared/app-token.js'
import { isHighSurrogate, isLowSurrogate } from '../../shared/surrogates.js'

/** One rejected request. It has no field for a token, a cookie or a body, so none can reach the file. */
export interface AuditedRejection {
  readonly event: 'unauthorized_access' | 'forbidden_access' | 'rate_limited'
  readonly ip: string
  /** The canonical path. A query is cut off. */
  readonly resource: string
  readonly method: string
  readonly status: number
  /** A short identifier such as `token-expired`. */
  readonly reason: string
  /** From a verified token only. Claims of an invalid token do not identify a user. */
  readonly user: UserDetails | null
  readonly requestId: string
  readonly userAgent: string | null | undefined
}

const MAX_RESOURCE_CHARACTERS = 1024
const MAX_EMAIL_CHARACTERS = 254
const MAX_OTHER_CHARACTERS = 256

/**
 * The record as JSON without its line break; `at` is in milliseconds since the epoch, `omitted` the number of records of the
 * address that it stands for.
 */
export const auditLine = (rejection: AuditedRejection, at: number, omitted = 0): string =>
  toLine({
    timestamp: new Date(at).toISOString(),
    event: rejection.event,
    ip: bounded(rejection.ip),
    resource: withoutQuery(bounded(rejection.resource, MAX_RESOURCE_CHARACTERS)),
    method: bounded(rejection.method),
    result: 'denied',
    status: rejection.status,
    reason: bounded(rejection.reason),
    user: rejection.user && {
      id: bounded(rejection.user.id),
      email: bounded(rejection.user.email, MAX_EMAIL_CHARACTERS),
      role: bounded(rejection.user.role)
    },
    requestId: bounded(rejection.requestId),
    userAgent: bounded(rejection.userAgent),
    ...(omitted > 0 && { omitted })
  })

/** Replaces records that were dropped. */
export const overflowLine = (dropped: number, at: number): string =>
  toLine({ timestamp: new Date(at).toISOString(), event: 'audit_overflow', dropped })

// JSON.stringify escapes C0 controls only. Some readers treat DEL, C1 controls and the two Unicode separators as line
// breaks, and bidirectional marks change the order in which a terminal shows a line.
const UNSAFE_CHARACTERS = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const toLine = (record: object): string =>
  JSON.stringify(record).replace(
    UNSAFE_CHARACTERS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  )

// With the u flag this matches unpaired surrogates only. They have no UTF-8 form, and a strict reader would reject the
// line.
const LONE_SURROGATES = /\p{Surrogate}/gu

const bounded = (value: string | null | undefined, max = MAX_OTHER_CHARACTERS): string | null => {
  // Values come from requests and token claims, whose types are not checked at run time.
  if (typeof value !== 'string') return null
  return truncated(value, max).replace(LONE_SURROGATES, '\ufffd')
}

const truncated = (value: string, max: number): string => {
  if (value.length <= max) return value
  const splitsPair = isHighSurrogate(value.charCodeAt(max - 1)) && isLowSurrogate(value.charCodeAt(max))
  return value.slice(0, splitsPair ? max - 1 : max)
}

// Queries may contain secrets. A caller that passes the raw URL must not leak them.
const withoutQuery = (path: string | null): string | null => path?.split('?', 1)[0] ?? null
