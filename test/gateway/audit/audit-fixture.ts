import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import type { Test } from 'tap'
import { AuditLog, type AuditLogOptions } from '../../../src/gateway/audit/audit-log.js'
import type { AuditedRejection } from '../../../src/gateway/audit/audit-record.js'

export const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

export const rejection = (changes: Partial<AuditedRejection> = {}): AuditedRejection => ({
  event: 'unauthorized_access',
  ip: '203.0.113.9',
  resource: '/api/zones/7',
  method: 'GET',
  status: 401,
  reason: 'UNAUTHENTICATED',
  user: null,
  requestId: 'r-1',
  userAgent: 'Firefox',
  ...changes
})

/** Records with different request ids. */
export const numbered = (id: number): AuditedRejection => rejection({ requestId: String(id) })

/** The request ids of JSON lines, in order. Throws for a line that is not JSON. */
export const idsIn = (text: string): number[] => linesOf(text).map((line) => Number(JSON.parse(line).requestId))

export const linesOf = (text: string): string[] => text.split('\n').slice(0, -1)

export const idsInFile = (file: string): number[] => idsIn(readFileSync(file, 'utf8'))

export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index)

/** A fallback that records its lines, and can be paused or made to fail. */
export class TestFallback extends Writable {
  text = ''
  broken = false
  #holding = false
  #release = (): void => undefined

  /** Holds the callbacks of further writes until the returned function is called. */
  hold(): () => void {
    this.#holding = true
    return () => {
      this.#holding = false
      this.#release()
    }
  }

  /** The ids of the marked lines. */
  get ids(): number[] {
    return idsIn(this.text.replaceAll('[AUDIT] ', ''))
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    if (this.broken) {
      done(new Error('EPIPE'))
      return
    }
    this.text += chunk.toString()
    this.#release = done
    this.emit('taken')
    if (!this.#holding) done()
  }
}

export interface Logged {
  readonly level: number
  readonly msg: string
  readonly err?: { readonly code: string }
}

/** An audit log with a fixed clock, and its file and fallback. */
export const openLog = async (t: Test, options: Partial<AuditLogOptions> & { fallback?: TestFallback } = {}) => {
  const file = options.file ?? join(t.testdir(), 'logs', 'audit.jsonl')
  const fallback = options.fallback ?? new TestFallback()
  const clock = { ms: START }
  const logged: Logged[] = []
  const logger = pino({ level: 'trace' }, { write: (line) => logged.push(JSON.parse(line)) })
  const log = await AuditLog.open({
    now: () => clock.ms,
    logger,
    anonymousPerMinute: Number.POSITIVE_INFINITY,
    ...options,
    file,
    fallback
  })
  t.teardown(() => log.close())
  return { log, file, fallback, clock, logged }
}
