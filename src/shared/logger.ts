import { type DestinationStream, destination, type Level, type Logger, pino } from 'pino'

// What must not be in a log, wherever it turns up at the top of a line or one step down.
const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'x-csrf-token',
  'token',
  'password',
  'newPassword',
  'secret'
]

const REDACTED_PATHS = [
  ...SECRET_FIELDS.flatMap((field) => [`["${field}"]`, `*["${field}"]`, `*.headers["${field}"]`, `*.body["${field}"]`]),
  // What a parser stopped at: somebody's headers and body as they came.
  'err.data'
]

export interface LoggerOptions {
  readonly name: string
  readonly level: Level | 'silent'
  /** Standard output where none is given. */
  readonly stream?: DestinationStream
}

/**
 * The same log for lines whose fields are known to hold no secret. Looking for secrets costs about 50 µs a line, ten times
 * the line itself: too much for one per request.
 */
export const withoutRedaction = (log: Logger): Logger => log.child({}, { redact: { paths: [] } })

export const createLogger = ({ name, level, stream }: LoggerOptions): Logger =>
  pino({ name, level, redact: { paths: REDACTED_PATHS, censor: '[redacted]' } }, stream ?? standardOutput())

/** One write for many lines: a call to the system for each would cost more than the line. At exit nothing is left behind. */
const standardOutput = (): DestinationStream =>
  destination({ dest: 1, sync: false, minLength: 8192, periodicFlush: 200 })
