import { type DestinationStream, type Level, type Logger, pino } from 'pino'
import { standardOutput } from './log-output.js'

// What must not be in a log, wherever it turns up at the top of a line or one step down.
const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'x-csrf-token',
  'x-exchange-secret',
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

export const createLogger = ({ name, level, stream }: LoggerOptions): Logger => {
  const options = { name, level, redact: { paths: REDACTED_PATHS, censor: '[redacted]' } }
  if (stream !== undefined) return pino(options, stream)
  const output = standardOutput()
  const log = pino(options, output)
  output.recovered = (dropped) => log.warn({ dropped }, 'log lines dropped')
  return log
}

/**
 * The same log without the search for secrets, for a line per request whose fields hold none: the search costs as much
 * as the rest of the line.
 */
export const withoutRedaction = (log: Logger): Logger => log.child({}, { redact: [] })
