import { Type } from '@sinclair/typebox'
import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { LoginSchema, SessionResponseSchema } from '../../../../schemas/auth.js'
import { action, defineRoutes, get, type LocalDocumentation, local, post } from './declare.js'

// A login replaces or clears these. The CSRF token stays: it belongs to the browser, not to the session.
const LOGIN_COOKIES = [
  'auth_token',
  'auth_user',
  'auth_permissions',
  'auth_token_expiry',
  'auth_via_oidc',
  'oidc_exchange_failed'
]

const backendError = { description: 'An error response of the backend, unchanged.' }

const login: LocalDocumentation = {
  description: 'Sets the session cookies if the backend responds with a session.',
  responses: {
    '2XX': {
      description:
        'The response of the backend without the token (`LOGIN_TOKEN_FIELD`), which is in the cookie; `LOGIN_BODY_TOKEN=keep` leaves it in.',
      body: SessionResponseSchema,
      cookies: LOGIN_COOKIES
    },
    default: backendError
  },
  needsBackend: true
}

const SESSION_COOKIES = [...LOGIN_COOKIES, 'csrf_token']

const logout: LocalDocumentation = {
  description:
    'Clears the cookies, even if the backend fails. A session of an identity provider ends too; the header ' +
    '`X-Logout-At` then contains the URL that the web application must open to sign out at the provider.',
  responses: {
    '2XX': {
      description: 'The response of the backend, or `success` alone if there was none.',
      cookies: SESSION_COOKIES
    },
    default: { ...backendError, cookies: SESSION_COOKIES }
  },
  needsBackend: false
}

const success = Type.Literal(true, { description: 'Always true.' })

const csrfToken: LocalDocumentation = {
  description: 'Returns the same token while it is valid, so that several tabs can use it.',
  responses: {
    200: {
      description: 'The token, to be sent as `X-CSRF-Token` with every write request.',
      body: Type.Object({
        success,
        csrfToken: Type.String({ description: 'The content of the cookie `csrf_token`.' })
      }),
      cookies: ['csrf_token']
    }
  },
  needsBackend: false
}

const providers: LocalDocumentation = {
  description: 'For login pages: the configured identity providers.',
  responses: {
    200: {
      description: 'One entry for each identity provider; none if none is configured.',
      body: Type.Object({
        success,
        data: Type.Array(
          Type.Object({
            name: Type.Literal('oidc', { description: 'Always oidc.' }),
            loginAt: Type.String({
              description: 'The URL to open for sign-in; accepts `returnTo`, a path of this site.'
            }),
            id: Type.Optional(Type.String({ description: 'The id of the provider, with `OIDC_PROVIDERS`.' })),
            label: Type.Optional(Type.String({ description: 'Its name for users, with `OIDC_PROVIDERS`.' }))
          }),
          { description: 'The sign-in methods besides a password.' }
        )
      })
    }
  },
  needsBackend: false
}

export const auth = defineRoutes({
  domain: 'auth',
  about: 'Signing in and out',
  rows: [
    local(post('/api/auth/login', 'Sign in', LoginSchema), login),
    local(action('/api/auth/logout', 'Sign out', ActionNoteSchema), logout),
    local(post('/api/auth/backend-login', 'Sign in at the backend', LoginSchema), login),
    get('/api/auth/backend-me', 'Read the signed-in user from the backend'),
    local(get('/api/auth/csrf-token', 'Get a CSRF token, as a cookie and in the body'), csrfToken),
    local(get('/api/auth/providers', 'List the identity providers'), providers)
  ]
})
