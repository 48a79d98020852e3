import { type TSchema, Type } from '@sinclair/typebox'
import { SessionResponseSchema } from '../../../schemas/auth.js'
import type { Method } from '../routes/declare.js'
import { SESSION_COOKIES } from '../session/app-session.js'

export const BACKEND_ERROR = 'An error response of the backend, unchanged.'

interface LocalResponse {
  readonly description: string
  readonly body?: TSchema
  /** Cookies that the response sets or clears. */
  readonly cookies?: readonly string[]
}

/** The documentation of a route that the gateway handles itself. */
export interface LocalOperation {
  readonly description: string
  /** By status. */
  readonly responses: Readonly<Record<string, LocalResponse>>
  /** Whether the route fails while the backend is unreachable. */
  readonly needsBackend: boolean
}

// A login replaces or clears all of them except the CSRF token, which belongs to the browser, not to the session.
const LOGIN_COOKIES = SESSION_COOKIES.filter((name) => name !== 'csrf_token')

const login: LocalOperation = {
  description: 'Sets the session cookies if the backend responds with a session.',
  responses: {
    '2XX': {
      description:
        'The response of the backend. With `LOGIN_BODY_TOKEN=omit`, `data.token` is removed; the token is in the cookie.',
      body: SessionResponseSchema,
      cookies: LOGIN_COOKIES
    },
    default: { description: BACKEND_ERROR }
  },
  needsBackend: true
}

const logout: LocalOperation = {
  description:
    'Clears the cookies, even if the backend fails. A session of an identity provider ends too; the header ' +
    '`X-Logout-At` then contains the URL that the page must open to sign out at the provider.',
  responses: {
    '2XX': {
      description: 'The response of the backend, or `success` alone if there was none.',
      cookies: SESSION_COOKIES
    },
    default: { description: BACKEND_ERROR, cookies: SESSION_COOKIES }
  },
  needsBackend: false
}

const csrfToken: LocalOperation = {
  description: 'Returns the same token while it is valid, so that several tabs can use it.',
  responses: {
    '200': {
      description: 'The token, to be sent as `X-CSRF-Token` with every mutation.',
      body: Type.Object({
        success: Type.Literal(true, { description: 'Always true.' }),
        csrfToken: Type.String({ description: 'The content of the cookie `csrf_token`.' })
      }),
      cookies: ['csrf_token']
    }
  },
  needsBackend: false
}

const providers: LocalOperation = {
  description: 'For login pages: whether an identity provider is configured.',
  responses: {
    '200': {
      description: 'One entry if an identity provider is configured, otherwise none.',
      body: Type.Object({
        success: Type.Literal(true, { description: 'Always true.' }),
        data: Type.Array(
          Type.Object({
            name: Type.Literal('oidc', { description: 'Always oidc.' }),
            loginAt: Type.String({
              description: 'The URL to open for sign-in; accepts `returnTo`, a path of this site.'
            })
          }),
          { description: 'The sign-in methods besides a password.' }
        )
      })
    }
  },
  needsBackend: false
}

const up = Type.Object({
  status: Type.Literal('up', { description: 'Available.' }),
  latencyMs: Type.Integer({ minimum: 0, description: 'The response time in milliseconds.' })
})

const down = (reasons: readonly string[]) =>
  Type.Object({
    status: Type.Literal('down', { description: 'Not available.' }),
    reason: Type.Union(
      reasons.map((reason) => Type.Literal(reason)),
      { description: 'The reason.' }
    )
  })

const status = (value: string, description: string) => Type.Object({ status: Type.Literal(value, { description }) })

const backendDown = down(['refused', 'timeout', 'error'])
const databaseDown = down(['refused', 'timeout', 'authentication', 'unknown database', 'unreachable', 'error'])

const health = (description: string, responses: LocalOperation['responses']): LocalOperation => ({
  description,
  responses,
  needsBackend: false
})

/** By `METHOD path`. */
export const localOperations: ReadonlyMap<`${Method} ${string}`, LocalOperation> = new Map([
  ['POST /api/auth/login', login],
  ['POST /api/auth/backend-login', login],
  ['POST /api/auth/logout', logout],
  ['GET /api/auth/csrf-token', csrfToken],
  ['GET /api/auth/providers', providers],
  [
    'GET /api/health',
    health('Liveness: checks no other service, so that their outages do not cause restarts of the gateway.', {
      '200': { description: 'The process is running.', body: status('ok', 'Always ok.') }
    })
  ],
  [
    'GET /api/health/ready',
    health('Readiness: checks the backend, at most once a second.', {
      '200': {
        description: 'The backend is available.',
        body: Type.Object({
          status: Type.Literal('ready', { description: 'The gateway can serve requests.' }),
          backend: Type.Object(up.properties, { description: 'The result of the check.' })
        })
      },
      '503': {
        description: 'The backend is not available.',
        body: Type.Object({
          status: Type.Literal('unavailable', { description: 'The gateway cannot serve requests.' }),
          backend: Type.Object(backendDown.properties, { description: 'The result of the check.' })
        })
      }
    })
  ],
  [
    'GET /api/health/database',
    health('Checks the database if one is configured, at most once a second.', {
      '200': {
        description: 'The database is available, or none is configured.',
        body: Type.Union([up, status('not configured', 'No database is configured.')])
      },
      '503': { description: 'The database is not available.', body: databaseDown }
    })
  ]
])
