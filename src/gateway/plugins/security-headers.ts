import { createHash } from 'node:crypto'
import helmet from '@fastify/helmet'
import fp from 'fastify-plugin'
import type { GatewayConfig } from '../config.js'
import { OIDC_PAGE_STYLE } from '../oidc/navigation.js'
import type { HeaderTable } from '../proxy/response-headers.js'

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

const contentSecurityPolicy = (config: GatewayConfig['headers']): string => {
  const scripts = ["'self'", ...inlineSources(config, []), ...config.scriptHosts]
  const styles = ["'self'", ...inlineSources(config, [OIDC_PAGE_STYLE]), ...config.styleHosts]
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
