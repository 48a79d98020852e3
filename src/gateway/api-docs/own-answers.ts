import { type TSchema, Type } from '@sinclair/typebox'
import { SessionResponseSchema } from '../../../schemas/auth.js'
import type { Method } from '../routes/declare.js'
import { SESSION_COOKIES } from '../session/app-session.js'
import { BACKEND_ERROR } from './words.js'

interface Answer {
  readonly description: string
  readonly body?: TSchema
  /** The cookies that come with it, or are cleared by it. */
  readonly cookies?: readonly string[]
}

/** How a route answers that is more than forwarded. */
export interface OwnAnswer {
  readonly description: string
  readonly answers: Readonly<Record<string, Answer>>
  /** Whether the answer is the backend's in the end, so that there is none where the backend is out of reach. */
  readonly needsBackend: boolean
}

// Those that speak of another session than the new one are cleared. The CSRF token is the browser's, whoever signs in.
const LOGIN_COOKIES = SESSION_COOKIES.filter((name) => name !== 'csrf_token')

const login: OwnAnswer = {
  description: 'Where the backend answers with a session, the session cookies are set.',
  answers: {
    '2XX': {
      description:
        "The backend's answer. A gateway with `LOGIN_BODY_TOKEN=omit` leaves `data.token` out: the cookie has it.",
      body: SessionResponseSchema,
      cookies: LOGIN_COOKIES
    },
    default: { description: BACKEND_ERROR }
  },
  needsBackend: true
}

const logout: OwnAnswer = {
  description:
    'The cookies are cleared, whatever the backend says to it. A session at an identity provider ends too; the ' +
    'header `X-Logout-At` then names the address at which the browser signs out there, for the page to go to.',
  answers: {
    '2XX': {
      description: "The backend's answer, or `success` alone where it gave none.",
      cookies: SESSION_COOKIES
    },
    default: { description: BACKEND_ERROR, cookies: SESSION_COOKIES }
  },
  needsBackend: false
}

const csrfToken: OwnAnswer = {
  description: 'The same token again while it is good, so that two tabs can use it.',
  answers: {
    '200': {
      description: 'The token, to be sent as `X-CSRF-Token` with everything that changes something.',
      body: Type.Object({
        success: Type.Literal(true, { description: 'Always true.' }),
        csrfToken: Type.String({ description: 'The content of the cookie `csrf_token`.' })
      }),
      cookies: ['csrf_token']
    }
  },
  needsBackend: false
}

const providers: OwnAnswer = {
  description: 'For login pages: whether there is an identity provider, and nothing about it.',
  answers: {
    '200': {
      description: 'An entry where an identity provider is configured, else none.',
      body: Type.Object({
        success: Type.Literal(true, { description: 'Always true.' }),
        data: Type.Array(
          Type.Object({
            name: Type.Literal('oidc', { description: 'Always this.' }),
            loginAt: Type.String({ description: 'Where to send the browser; takes `returnTo`, a path of this site.' })
          }),
          { description: 'The ways to sign in besides a password.' }
        )
      })
    }
  },
  needsBackend: false
}

const up = Type.Object({
  status: Type.Literal('up', { description: 'It answers.' }),
  latencyMs: Type.Integer({ minimum: 0, description: 'How long that took, in milliseconds.' })
})

const down = (reasons: readonly string[]) =>
  Type.Object({
    status: Type.Literal('down', { description: 'It does not answer.' }),
    reason: Type.Union(
      reasons.map((reason) => Type.Literal(reason)),
      { description: 'Why, as far as we know.' }
    )
  })

const status = (value: string, description: string) => Type.Object({ status: Type.Literal(value, { description }) })

const backendDown = down(['refused', 'timeout', 'error'])
const databaseDown = down(['refused', 'timeout', 'authentication', 'unknown database', 'unreachable', 'error'])

const health = (description: string, answers: OwnAnswer['answers']): OwnAnswer => ({
  description,
  answers,
  needsBackend: false
})

/** By `METHOD path`, as their handlers are. */
export const ownAnswers: ReadonlyMap<`${Method} ${string}`, OwnAnswer> = new Map([
  ['POST /api/auth/login', login],
  ['POST /api/auth/backend-login', login],
  ['POST /api/auth/logout', logout],
  ['GET /api/auth/csrf-token', csrfToken],
  ['GET /api/auth/providers', providers],
  [
    'GET /api/health',
    health('Asks nobody, so that a failing neighbour never gets a gateway restarted.', {
      '200': { description: 'The process is up.', body: status('ok', 'Always this.') }
    })
  ],
  [
    'GET /api/health/ready',
    health('Asks the backend once a second at most.', {
      '200': {
        description: 'The backend answers.',
        body: Type.Object({
          status: Type.Literal('ready', { description: 'Send requests.' }),
          backend: Type.Object(up.properties, { description: 'What the backend said.' })
        })
      },
      '503': {
        description: 'The backend does not answer.',
        body: Type.Object({
          status: Type.Literal('unavailable', { description: 'Send no requests.' }),
          backend: Type.Object(backendDown.properties, { description: 'What is wrong with the backend.' })
        })
      }
    })
  ],
  [
    'GET /api/health/database',
    health('Asks the database once a second at most, where one is configured.', {
      '200': {
        description: 'The database answers, or there is none.',
        body: Type.Union([up, status('not configured', 'There is no database to ask.')])
      },
      '503': { description: 'The database does not answer.', body: databaseDown }
    })
  ]
])
