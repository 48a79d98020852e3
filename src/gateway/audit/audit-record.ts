import type { UserDetails } from '../../shared/app-token.js'

/** One refused request. There is no place here for a token, a cookie or a body, so none can reach the file. */
export interface Denial {
  readonly event: 'unauthorized_access' | 'forbidden_access'
  readonly ip: string
  /** The path that was decided on; whatever follows a question mark is left out. */
  readonly resource: string
  readonly method: string
  readonly status: number
  /** A short word such as `token-expired`, never a sentence. */
  readonly reason: string
  /** As a verified token names them: claims of a token that did not verify are nobody's identity. */
  readonly user: UserDetails | null
  readonly requestId: string
  readonly userAgent: string | null | undefined
}

const MAX_RESOURCE_CHARACTERS = 1024
const MAX_EMAIL_CHARACTERS = 254
const MAX_OTHER_CHARACTERS = 256

/** The record as JSON without its line break; `at` is in milliseconds since the epoch. */
export const auditLine = (denial: Denial, at: number): string =>
  oneLine({
    timestamp: new Date(at).toISOString(),
    event: denial.event,
    ip: bounded(denial.ip),
    resource: withoutQuery(bounded(denial.resource, MAX_RESOURCE_CHARACTERS)),
    method: bounded(denial.method),
    result: 'denied',
    status: denial.status,
    reason: bounded(denial.reason),
    user: denial.user && {
      id: bounded(denial.user.id),
      email: bounded(denial.user.email, MAX_EMAIL_CHARACTERS),
      role: bounded(denial.user.role)
    },
    requestId: bounded(denial.requestId),
    userAgent: bounded(denial.userAgent)
  })

/** Stands in the log where `dropped` records could not. */
export const overflowLine = (dropped: number, at: number): string =>
  oneLine({ timestamp: new Date(at).toISOString(), event: 'audit_overflow', dropped })

// JSON.stringify escapes C0 only. DEL, C1 and the two Unicode separators also end a line for some readers, and the
// bidirectional marks make a terminal show a line in another order than it was written.
const UNSAFE_IN_A_LINE = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const oneLine = (record: object): string =>
  JSON.stringify(record).replace(
    UNSAFE_IN_A_LINE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  )

// With the u flag this finds only surrogates without their partner. They have no UTF-8 form, and a strict reader would
// refuse the whole line because of one.
const LONE_SURROGATES = /\p{Surrogate}/gu

const bounded = (value: string | null | undefined, max = MAX_OTHER_CHARACTERS): string | null => {
  // Values come from requests and token claims: one that is not the text its type promises must not throw here.
  if (typeof value !== 'string') return null
  return cut(value, max).replace(LONE_SURROGATES, '\ufffd')
}

const cut = (value: string, max: number): string => {
  if (value.length <= max) return value
  const splitsPair = isHighSurrogate(value.charCodeAt(max - 1)) && isLowSurrogate(value.charCodeAt(max))
  return value.slice(0, splitsPair ? max - 1 : max)
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

// Queries carry secrets. A caller that hands over the raw URL by mistake must not leak them.
const withoutQuery = (path: string | null): string | null => path?.split('?', 1)[0] ?? null
