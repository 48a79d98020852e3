import { createHash } from 'node:crypto'
import helmet from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'
import { SCRIPT, STYLE } from '../api-docs/page-assets.js'
import type { GatewayConfig } from '../config.js'
import { OIDC_PAGE_STYLE } from '../oidc/navigation.js'

/**
 * First: whatever happens to the request later, its answer carries these. They are added when an answer leaves; to those of
 * the backend the forwarder adds them itself, because it writes these past the framework.
 */
export const securityHeaders = (app: FastifyInstance, table: HeaderTable): void => {
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.headers(table)
    reply.header('x-request-id', request.id)
    done(null, payload)
  })
}

export type HeaderTable = Readonly<Record<string, string>>

/**
 * The security headers of every answer, worked out once: they are the same for all of them. Helmet is asked only for the
 * policy, which it checks directive by directive; as a plugin it would build all of this again for each answer.
 */
export const securityHeaderTable = (config: GatewayConfig['headers']): HeaderTable => ({
  'content-security-policy': contentSecurityPolicy(config),
  ...(config.strict && { 'strict-transport-security': 'max-age=31536000; includeSubDomains' }),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'geolocation=(self), microphone=(), camera=(), payment=()'
})

/** A backend's own copies of these never reach the browser, nor do headers that say what it is made of. */
export const GATEWAY_OWNED_HEADERS: readonly string[] = [
  'content-security-policy',
  'content-security-policy-report-only',
  'strict-transport-security',
  'x-content-type-options',
  'x-frame-options',
  'referrer-policy',
  'permissions-policy',
  'x-powered-by',
  'server'
]

const contentSecurityPolicy = (config: GatewayConfig['headers']): string => {
  const scripts = ["'self'", ...inlineSources(config, [SCRIPT]), ...config.scriptHosts]
  const styles = ["'self'", ...inlineSources(config, [STYLE, OIDC_PAGE_STYLE]), ...config.styleHosts]
  const connections = ["'self'", 'wss:', ...config.connectHosts]
  if (!config.strict) {
    // Hot reload evaluates code and talks to a development server on this machine.
    scripts.push("'unsafe-eval'")
    connections.push('ws:', 'http://localhost:*', 'http://127.0.0.1:*')
  }
  return render({
    'default-src': ["'self'"],
    'script-src': scripts,
    'style-src': styles,
    'img-src': ["'self'", 'data:', 'blob:', ...config.imgHosts],
    'font-src': ["'self'", 'data:', ...config.fontHosts],
    'connect-src': connections,
    'frame-ancestors': ["'none'"]
  })
}

/** All inline code, or only that of the gateway's own pages: a hash allows one text and no other. */
const inlineSources = ({ inline }: GatewayConfig['headers'], own: readonly string[]): string[] =>
  inline ? ["'unsafe-inline'"] : own.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)

/** Helmet writes policies as middleware does; this is the smallest response it can write one to. */
const render = (directives: Record<string, string[]>): string => {
  let policy = ''
  const response = {
    setHeader: (_name: string, value: string) => {
      policy = value
    }
  }
  const write = helmet.fastifyHelmet.contentSecurityPolicy({ useDefaults: false, directives })
  write({} as Parameters<typeof write>[0], response as unknown as Parameters<typeof write>[1], (error) => {
    if (error) throw error
  })
  return policy
}
