import { monotonicMs } from '../../shared/monotonic.js'
import type { Span } from '../../shared/tracing.js'
import { ERROR_LIMIT_EXCEEDED, type ReplyError } from '../core/codes.js'
import type { MaybePromise } from '../core/maybe-promise.js'
import type { Relay } from '../core/relay.js'
import { TimeSlice } from '../core/time-slice.js'
import type { ApiRequest } from './request.js'

/** The result of a method as JSON text. */
export type ApiResult = string | ReplyError

/** Without `temporary`, which only client replies have. */
export const bareErrorJson = ({ code, message }: ReplyError): string =>
  `{"code":${code},"message":${JSON.stringify(message)}}`

export const errorJson = (error: ReplyError): string => `{"error":${bareErrorJson(error)}}`

export const resultJson = (result: string): string => `{"result":${result}}`

const MIB = 1024 * 1024
/** A response is in memory completely, and the length of a string is limited by V8. */
const MAX_RESPONSE_LENGTH = 16 * MIB

export const RESPONSE_TOO_LARGE = ERROR_LIMIT_EXCEEDED.with(
  `the responses to one request must not exceed ${MAX_RESPONSE_LENGTH / MIB} MiB`
)

/** The time slice, the response size and the span that the commands of one HTTP request share. */
export class ApiBudget {
  /** Null if the request is not traced. */
  readonly span: Span | null
  /** Counts the channels of a broadcast that failed: the method itself succeeds. */
  readonly metrics: { apiError(method: string, code: number): void }
  #slice: TimeSlice | null = null
  /** Set by a call that takes several turns: later commands of the request wait for it, which keeps their order. */
  barrier: Promise<unknown> | null = null
  /** The last `performance.now()`, for approximate times. */
  nowMs = 0
  #left = MAX_RESPONSE_LENGTH
  #isExhausted = false

  constructor(span: Span | null, metrics: ApiBudget['metrics']) {
    this.span = span
    this.metrics = metrics
  }

  /** Created on first use: most calls are too short for it. */
  get slices(): TimeSlice {
    this.#slice ??= new TimeSlice(monotonicMs)
    return this.#slice
  }

  /** Maximum length of the next result. */
  get left(): number {
    return this.#left
  }

  /** A result exceeded the budget; further reads are rejected without running. */
  get isExhausted(): boolean {
    return this.#isExhausted
  }

  /** Returns the result, or an error if it is null or exceeds the budget. */
  fit(result: string | null): string | ReplyError {
    if (result === null || result.length > this.#left) return this.reject()
    this.#left -= result.length
    return result
  }

  reject(): ReplyError {
    this.#isExhausted = true
    return RESPONSE_TOO_LARGE
  }
}

/** Returns the JSON text of a result. Throws `InvalidField` if the request is invalid. */
export type ApiMethod = (relay: Relay, request: ApiRequest, budget: ApiBudget) => MaybePromise<ApiResult>
