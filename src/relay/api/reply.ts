import { ERROR_LIMIT_EXCEEDED, type ReplyError } from '../core/codes.js'
import { TimeSlice } from '../core/time-slice.js'

/** Without `temporary`, which is for clients. */
export const bareErrorJson = ({ code, message }: ReplyError): string =>
  `{"code":${code},"message":${JSON.stringify(message)}}`

export const errorJson = (error: ReplyError): string => `{"error":${bareErrorJson(error)}}`

export const resultJson = (result: string): string => `{"result":${result}}`

const MIB = 1024 * 1024
/** All of a response is in memory at once, and a text beyond V8's limit cannot be made at all. */
const MAX_RESPONSE_LENGTH = 16 * MIB

export const RESPONSE_TOO_LARGE = ERROR_LIMIT_EXCEEDED.with(
  `the responses to one request must not exceed ${MAX_RESPONSE_LENGTH / MIB} MiB`
)

/** What the commands of one HTTP request share: how long they run before others do, and how much they may answer. */
export class ApiBudget {
  #slice: TimeSlice | null = null
  /** A call that takes several turns: no later command of the request starts before it is done, which keeps their order. */
  barrier: Promise<unknown> | null = null
  /** What `performance.now` said last, for those who need to know only about. */
  nowMs = 0
  #left = MAX_RESPONSE_LENGTH
  #isSpent = false

  /** Begun by the first who asks: most calls are too short for it. */
  get slices(): TimeSlice {
    this.#slice ??= new TimeSlice()
    return this.#slice
  }

  /** How long the result of a call that reads may still be. */
  get left(): number {
    return this.#left
  }

  /** A result did not fit: the rest of what reads is refused without being read. */
  get isExhausted(): boolean {
    return this.#isSpent
  }

  /** The result, or an error where it is null or longer than what is left. */
  fit(result: string | null): string | ReplyError {
    if (result === null || result.length > this.#left) return this.refuse()
    this.#left -= result.length
    return result
  }

  refuse(): ReplyError {
    this.#isSpent = true
    return RESPONSE_TOO_LARGE
  }
}
