import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { isObject } from '../../shared/is-object.js'
import { jsonOrUndefined } from '../../shared/json-or-undefined.js'
import { GatewayError } from '../errors.js'

/** Where browsers send violations of the Content-Security-Policy. */
export const CSP_REPORTS_PATH = '/csp-reports'

export interface CspReportsOptions {
  readonly log: Logger
  readonly monotonicMs: () => number
}

const MAX_BODY_BYTES = 16 * 1024

/** Anyone can send reports, and a page with one error sends one with each visit. */
const LOG_INTERVAL_MS = 1_000

/** `POST /csp-reports`: logs at most one violation per second, and counts the others. */
export const cspReports = (app: FastifyInstance, { log, monotonicMs }: CspReportsOptions): void => {
  let nextLogMs = Number.NEGATIVE_INFINITY
  let suppressed = 0

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/csp-report',
      { parseAs: 'string', bodyLimit: MAX_BODY_BYTES },
      (_request, body, done) => done(null, jsonOrUndefined(String(body)))
    )
    scope.post(CSP_REPORTS_PATH, { bodyLimit: MAX_BODY_BYTES }, async (request, reply) => {
      const report = isObject(request.body) ? request.body['csp-report'] : undefined
      if (!isObject(report)) throw new GatewayError('MALFORMED_BODY')
      const now = monotonicMs()
      if (now < nextLogMs) suppressed += 1
      else {
        log.warn({ requestId: request.id, ...violationOf(report), suppressed }, 'content security policy violation')
        nextLogMs = now + LOG_INTERVAL_MS
        suppressed = 0
      }
      return reply.code(204).header('cache-control', 'no-store').send()
    })
  })
}

/** Without queries and fragments, which may contain secrets. */
const violationOf = (report: Readonly<Record<string, unknown>>) => ({
  directive: shortText(report['effective-directive'] ?? report['violated-directive']),
  blocked: withoutQuery(report['blocked-uri']),
  page: withoutQuery(report['document-uri']),
  script: withoutQuery(report['source-file']),
  disposition: shortText(report.disposition)
})

const MAX_CHARACTERS = 200

const shortText = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value.slice(0, MAX_CHARACTERS) : null

/** Of other schemes, such as `data:`, only the scheme: the rest is content. */
const withoutQuery = (value: unknown): string | null => {
  const text = shortText(value)
  if (text === null) return null
  const [address = ''] = text.split(/[?#]/, 1)
  return /^[a-z][a-z0-9+.-]*:(?!\/\/)/i.test(address) ? `${address.split(':', 1).join()}:` : address
}
