import { Writable } from 'node:stream'
import pino, { type Logger } from 'pino'

export type LogLine = Readonly<Record<string, unknown>>

/** A logger that records its lines. */
export const recordedLog = (): { readonly lines: LogLine[]; readonly log: Logger } => {
  const lines: LogLine[] = []
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(JSON.parse(String(chunk)))
      done()
    }
  })
  return { lines, log: pino({ level: 'info', base: null }, stream) }
}
