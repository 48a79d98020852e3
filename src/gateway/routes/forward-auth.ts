import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type AppClaims, type AppTokenVerifier, userDetails } from '../../shared/app-token.js'
import type { AddressSet } from '../../shared/ip-address.js'
import { GatewayError } from '../errors.js'
import { browserHost } from '../http/client-request.js'
import { HOME_PATH, LOGIN_PATH } from '../oidc/config.js'
import { queryOf } from '../oidc/navigation.js'
import { addressWithReturn, returnPath } from '../oidc/return-path.js'
import type { UserRevocations } from '../revocation/user-revocations.js'
import { DEFAULT_IDENTITY_HEADERS, IdentityHeaders } from '../session/identity-headers.js'
import { checkToken, type Rejection, type RejectionOptions, recordRejection } from '../session/token-check.js'

export interface ForwardAuthOptions extends RejectionOptions {
  /** The proxies that may ask. */
  readonly trusted: AddressSet
  readonly tokens: AppTokenVerifier
  /** Null if revocation is disabled. */
  readonly revocations: Pick<UserRevocations, 'requireKnown'> | null
  /** From `PUBLIC_URL`; null if it is not set. */
  readonly publicOrigin: string | null
  /** Whether users can sign in through an identity provider. */
  readonly hasSignIn: boolean
}

export const VERIFY_PATH = '/auth/verify'

/** Response header of 401: where a document sends the browser to sign in. For nginx, which passes on no redirect. */
const SIGN_IN_HEADER = 'x-sign-in-at'

/** The requirements of the proxy for the user. */
interface Requirements {
  /** Whether documents are redirected to the sign-in. */
  readonly redirect: boolean
  /** The user must have one of these, if there are any. */
  readonly roles: readonly string[]
  /** The user must have all of these. */
  readonly permissions: readonly string[]
}

/**
 * `GET /auth/verify`: tells a reverse proxy whether the browser's request may pass, and in headers who the user is. The
 * request has passed the chain, so that an ended session is no session, and a provider session has been exchanged.
 */
export const forwardAuth = (app: FastifyInstance, options: ForwardAuthOptions): void => {
  const { trusted, tokens, revocations } = options
  const identity = new IdentityHeaders(DEFAULT_IDENTITY_HEADERS)

  app.get(VERIFY_PATH, async (request, reply) => {
    // The peer itself: others could claim any address and any original request.
    if (!trusted.has(request.socket.remoteAddress)) throw new GatewayError('NOT_FOUND')
    const requirements = requirementsIn(queryOf(request))
    reply.header('cache-control', 'no-store')
    // Also for visitors: a sign-in would lead back here.
    revocations?.requireKnown()
    const { claims, rejection } = decision(request, tokens, requirements)
    if (rejection !== null) return reject(request, reply, rejection, requirements, options)
    for (const [name, value] of pairs(identity.of(claims))) reply.header(name, value)
    return reply.send()
  })
}

type Decision =
  | { readonly claims: AppClaims; readonly rejection: null }
  | { readonly claims: null; readonly rejection: Rejection }

const decision = (request: FastifyRequest, tokens: AppTokenVerifier, required: Requirements): Decision => {
  const rejection = checkToken(request, tokens)
  if (rejection !== null || request.auth === null) return { claims: null, rejection: rejection ?? NO_TOKEN }
  const claims = request.auth
  const reason = missingRight(claims, required)
  return reason === null
    ? { claims, rejection: null }
    : { claims: null, rejection: { code: 'FORBIDDEN', reason, claims } }
}

const NO_TOKEN: Rejection = { code: 'UNAUTHENTICATED', reason: 'token-absent', claims: null }

const missingRight = (claims: AppClaims, { roles, permissions }: Requirements): string | null => {
  const { role } = userDetails(claims)
  if (roles.length > 0 && (role === null || !roles.includes(role))) return 'missing-role'
  const granted: unknown = Object.hasOwn(claims, 'permissions') ? claims.permissions : undefined
  const hasAll = permissions.every((permission) => Array.isArray(granted) && granted.includes(permission))
  return hasAll ? null : 'missing-permission'
}

/** Throws for a parameter that is not known: a misspelt `role` must not let everyone pass. */
const requirementsIn = (query: URLSearchParams): Requirements => {
  const invalid = [...query].find(
    ([name, value]) => !PARAMETERS.has(name) || value === '' || (name === 'redirect' && value !== '1')
  )
  if (invalid !== undefined) {
    const details = [{ path: `/${invalid[0]}`, message: 'must be redirect=1, or a role or permission' }]
    throw new GatewayError('VALIDATION_FAILED', { details })
  }
  return { redirect: query.has('redirect'), roles: query.getAll('role'), permissions: query.getAll('permission') }
}

const PARAMETERS: ReadonlySet<string> = new Set(['redirect', 'role', 'permission'])

const reject = (
  request: FastifyRequest,
  reply: FastifyReply,
  rejection: Rejection,
  { redirect }: Requirements,
  options: ForwardAuthOptions
): FastifyReply => {
  const error = recordRejection(request, rejection, options)
  if (error.statusCode === 401 && options.hasSignIn && isForDocument(request)) {
    const address = signInAddress(request, options)
    if (redirect) return reply.redirect(address, 302)
    reply.header(SIGN_IN_HEADER, address)
  }
  throw error
}

/** Whether the browser asked the proxy for a page: a script or an image cannot follow the redirect to a sign-in. */
const isForDocument = ({ headers }: FastifyRequest): boolean => {
  const method = headers['x-forwarded-method'] ?? 'GET'
  if (method !== 'GET' && method !== 'HEAD') return false
  const destination = headers['sec-fetch-dest']
  // Browsers send it with every request over TLS.
  return destination === undefined ? /\btext\/html\b/i.test(headers.accept ?? '') : destination === 'document'
}

/** Only a path of this site: the original request is what the proxy reports, and possibly what its client invented. */
const signInAddress = (request: FastifyRequest, { publicOrigin }: ForwardAuthOptions): string => {
  if (publicOrigin !== null && browserHost(request).toLowerCase() !== new URL(publicOrigin).host)
    // Cookies of the gateway's host do not reach the other host, so the user could not return there.
    return `${publicOrigin}${LOGIN_PATH}`
  const returnTo = returnPath(request.headers['x-forwarded-uri'])
  return addressWithReturn(LOGIN_PATH, returnTo === VERIFY_PATH ? HOME_PATH : returnTo)
}

function* pairs(namesAndValues: readonly string[]): Generator<readonly [string, string]> {
  for (let index = 0; index < namesAndValues.length; index += 2)
    yield [namesAndValues[index] ?? '', namesAndValues[index + 1] ?? '']
}
