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

const REDACTED_PATHS = SECRET_FIELDS.flatMap((field) => [
  `["${field}"]`,
  `*["${field}"]`,
  `*.headers["${field}"]`,
  `*.body["${field}"]`
])

export interface LoggerOptions {
  readonly name: string
  readonly level: Level | 'silent'
  /** Standard output where none is given. */
  readonly stream?: DestinationStream
}

export const createLogger = ({ name, level, stream }: LoggerOptions): Logger =>
  pino({ name, level, redact: { paths: REDACTED_PATHS, censor: '[redacted]' } }, stream ?? destination({ dest: 1 }))
