import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import type { FieldError } from '../../../schemas/field-errors.js'
import { messageOf } from '../../shared/error-message.js'
import { isObject } from '../../shared/is-object.js'
import { requestLogger } from '../../shared/logger.js'
import { sameSecret } from '../../shared/same-secret.js'
import type { AuditLog } from '../audit/audit-log.js'
import { GatewayError } from '../errors.js'
import { requestId } from '../http/client-request.js'
import type { SendError } from '../http/error-sender.js'
import { invalidateUserTokens, type RelayApiConfig } from './relay-api.js'
import type { RevocationTarget, UserRevocations } from './user-revocations.js'

export interface RevocationConfig {
  readonly listen: { readonly host: string; readonly port: number }
  readonly key: string
  /** Also accepted during a rotation; null if there is none. */
  readonly previousKey: string | null
  readonly maxTokenAgeMs: number
  /** Null if the relay is not notified. */
  readonly relay: RelayApiConfig | null
}

export interface InternalApiOptions {
  readonly config: RevocationConfig
  readonly revocations: UserRevocations
  readonly audit: AuditLog
  readonly sendError: SendError
  readonly log: Logger
  readonly now: () => number
}

const REVOKE_PATH = '/api/internal/revoke'
const MAX_BODY_BYTES = 4096
const MAX_ID_CHARACTERS = 1024

/** How far the clock of the caller may be ahead of ours. */
const CLOCK_SKEW_SECONDS = 60

interface RevokeRequest {
  readonly target: RevocationTarget
  readonly issuedBeforeMs: number
}

/** A server of its own for the backend and operators: the public listener does not have its route. */
export const internalApi = (options: InternalApiOptions): FastifyInstance => {
  const { config, sendError, log, now } = options
  const loggerInstance: FastifyBaseLogger = requestLogger(log)
  const app = Fastify({
    genReqId: requestId,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: 10_000,
    forceCloseConnections: true,
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' })
  })
  app.setErrorHandler((error, _request, reply) => sendError(error, reply))
  app.setNotFoundHandler((_request, reply) => sendError(new GatewayError('NOT_FOUND'), reply))
  // Before the body is read: a client without the key must not upload one.
  app.addHook('onRequest', async (request) => {
    if (!hasKey(request, config)) throw rejectKey(request, options)
  })
  app.post(REVOKE_PATH, async (request, reply) => {
    const revocation = readRequest(request.body, now())
    await revokeEverywhere(revocation, options)
    const { target, issuedBeforeMs } = revocation
    request.log.info({ [target.kind]: target.value, issuedBefore: issuedBeforeMs / 1000 }, 'sessions revoked')
    return reply
      .header('cache-control', 'no-store')
      .send({ success: true, data: { issuedBefore: issuedBeforeMs / 1000 } })
  })
  return app
}

/** The gateways and the relay at the same time: one that is unavailable must not delay the others. */
const revokeEverywhere = async (
  { target, issuedBeforeMs }: RevokeRequest,
  { config: { relay }, revocations }: InternalApiOptions
): Promise<void> => {
  const [gateways, relays] = await Promise.allSettled([
    revocations.revoke(target, issuedBeforeMs),
    // The relay knows users only.
    relay !== null && target.kind === 'user' && invalidateUserTokens(relay, target.value, issuedBeforeMs)
  ])
  // Nothing was revoked.
  if (gateways.status === 'rejected' && gateways.reason instanceof GatewayError) throw gateways.reason
  const details: FieldError[] = []
  if (gateways.status === 'rejected')
    details.push({ path: '/gateways', message: 'is in effect at this gateway only, because Redis is unavailable' })
  if (relays.status === 'rejected')
    details.push({ path: '/relay', message: `was not informed: ${messageOf(relays.reason)}` })
  if (details.length > 0) throw new GatewayError('REVOCATION_INCOMPLETE', { details })
}

/** As at the relay's API: in `X-API-Key`, or in `Authorization` as `apikey`. */
const hasKey = ({ headers }: FastifyRequest, { key, previousKey }: RevocationConfig): boolean => {
  const given = headers['x-api-key'] ?? /^apikey +(.*)$/i.exec(headers.authorization ?? '')?.[1]
  return [key, previousKey].some((each) => each !== null && typeof given === 'string' && sameSecret(given, each))
}

const rejectKey = (request: FastifyRequest, { audit }: InternalApiOptions): GatewayError => {
  audit.record({
    event: 'unauthorized_access',
    ip: request.ip,
    resource: request.url,
    method: request.method,
    status: 401,
    reason: 'internal-key',
    user: null,
    requestId: request.id,
    userAgent: request.headers['user-agent'] ?? null
  })
  return new GatewayError('UNAUTHENTICATED', { headers: { connection: 'close' } })
}

const FIELDS: ReadonlySet<string> = new Set(['user', 'session', 'issuedBefore'])

/** Throws `VALIDATION_FAILED` with all errors. */
const readRequest = (body: unknown, nowMs: number): RevokeRequest => {
  if (!isObject(body))
    throw new GatewayError('VALIDATION_FAILED', { details: [{ path: '', message: 'a JSON object is required' }] })
  const details: FieldError[] = Object.keys(body)
    .filter((name) => !FIELDS.has(name))
    .map((name) => ({ path: `/${name}`, message: 'is not a field of this request' }))
  const { user, session, issuedBefore } = body
  if ((user === undefined) === (session === undefined))
    details.push({ path: '', message: 'either user or session is required' })
  const given = user === undefined ? session : user
  const id = idText(given)
  if (id === null && given !== undefined)
    details.push({
      path: user === undefined ? '/session' : '/user',
      message: `must be text of 1 to ${MAX_ID_CHARACTERS} characters, or a whole number`
    })
  const issuedBeforeMs = timeOf(issuedBefore, nowMs)
  if (issuedBeforeMs === null)
    details.push({
      path: '/issuedBefore',
      message: `must be a time in seconds since 1970, at most ${CLOCK_SKEW_SECONDS} s in the future`
    })
  if (details.length > 0 || id === null || issuedBeforeMs === null)
    throw new GatewayError('VALIDATION_FAILED', { details })
  return { target: { kind: user === undefined ? 'session' : 'user', value: id }, issuedBeforeMs }
}

/** As the id of a token's user is read: a number is the same user as its text. */
const idText = (value: unknown): string | null => {
  const text = Number.isSafeInteger(value) ? String(value) : value
  return typeof text === 'string' && text !== '' && text.length <= MAX_ID_CHARACTERS ? text : null
}

const timeOf = (seconds: unknown, nowMs: number): number | null => {
  if (seconds === undefined) return nowMs
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds < 0) return null
  return seconds * 1000 <= nowMs + CLOCK_SKEW_SECONDS * 1000 ? seconds * 1000 : null
}
