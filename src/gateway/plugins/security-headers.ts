import { createHash } from 'node:crypto'
import helmet from '@fastify/helmet'
import Fastify from 'fastify'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../config.js'
import type { HeaderTable } from '../http/header-table.js'
import { OIDC_PAGE_STYLE } from '../oidc/navigation.js'
import { CSP_REPORTS_PATH } from '../routes/csp-reports.js'

export interface SecurityHeadersOptions {
  readonly headerTable: HeaderTable
}

/**
 * Adds the security headers to every response. The forwarder adds them to responses of the backend itself, because it
 * writes those without Fastify.
 */
export const securityHeaders = fp<SecurityHeadersOptions>(
  async (app, { headerTable }) => {
    app.addHook('onSend', (request, reply, payload, done) => {
      reply.headers(headerTable)
      reply.header('x-request-id', request.id)
      done(null, payload)
    })
  },
  { name: 'security-headers', fastify: '5.x', dependencies: ['error-handling'] }
)

const HELMET_HEADERS = [
  'content-security-policy',
  'strict-transport-security',
  'x-content-type-options',
  'x-frame-options',
  'referrer-policy'
]

/** The security headers of every response. In the mode `report-only`, the browser enforces the standard policy. */
export const securityHeaderTable = async (config: GatewayConfig['headers']): Promise<HeaderTable> => {
  const isReportOnly = config.mode === 'report-only'
  const enforced = isReportOnly ? ({ ...config, mode: 'standard' } as const) : config
  const table = await helmetHeaders(enforced)
  const reported = isReportOnly ? (await helmetHeaders(config))['content-security-policy'] : undefined
  return {
    ...table,
    ...(reported !== undefined && { 'content-security-policy-report-only': reported }),
    'permissions-policy': 'geolocation=(self), microphone=(), camera=(), payment=()'
  }
}

/** Helmet generates the headers once, at start, because they never change: as a plugin it would generate them for every response. */
const helmetHeaders = async (config: GatewayConfig['headers']): Promise<HeaderTable> => {
  const app = Fastify()
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: cspDirectives(config) },
    strictTransportSecurity: config.strict && { maxAge: 31_536_000, includeSubDomains: true },
    xFrameOptions: frameOptions(config),
    referrerPolicy: { policy: 'strict-origin-when-cross-origin' }
  })
  app.get('/', async () => '')
  const { headers } = await app.inject('/')
  await app.close()
  const sent = HELMET_HEADERS.filter((name) => headers[name] !== undefined).map((name) => [name, String(headers[name])])
  return Object.fromEntries(sent)
}

/** The older header cannot name other hosts, and browsers that know `frame-ancestors` ignore it. */
const frameOptions = ({ frameAncestors }: GatewayConfig['headers']) => {
  if (frameAncestors.length === 0) return { action: 'deny' } as const
  return frameAncestors.every((host) => host === SELF) ? ({ action: 'sameorigin' } as const) : false
}

/** Stands for the gateway's own origin in `CSP_FRAME_ANCESTORS`. */
const SELF = 'self'

const cspDirectives = (config: GatewayConfig['headers']): Record<string, string[]> => {
  const isHardened = config.mode !== 'standard'
  const scripts = ["'self'", ...inlineSources(config, []), ...config.scriptHosts]
  const styles = ["'self'", ...inlineSources(config, [OIDC_PAGE_STYLE]), ...config.styleHosts]
  const connections = ["'self'", ...(isHardened ? [] : ['wss:']), ...config.connectHosts]
  if (!config.strict) {
    // Hot reload evaluates code and connects to a development server on this machine.
    scripts.push("'unsafe-eval'")
    connections.push('ws:', 'http://localhost:*', 'http://127.0.0.1:*')
  }
  const ancestors = config.frameAncestors.map((host) => (host === SELF ? "'self'" : host))
  return {
    'default-src': ["'self'"],
    'script-src': scripts,
    'style-src': styles,
    'img-src': ["'self'", 'data:', 'blob:', ...config.imgHosts],
    'font-src': ["'self'", 'data:', ...config.fontHosts],
    'connect-src': connections,
    ...(isHardened && { 'base-uri': ["'none'"], 'form-action': ["'self'"] }),
    'frame-ancestors': ancestors.length === 0 ? ["'none'"] : ancestors,
    ...(isHardened && { 'report-uri': [CSP_REPORTS_PATH] })
  }
}

/** Allows all inline code, or only that of the gateway's own pages by its hash. */
const inlineSources = ({ inline }: GatewayConfig['headers'], own: readonly string[]): string[] =>
  inline ? ["'unsafe-inline'"] : own.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)
