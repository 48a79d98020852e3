import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Refusal } from '../errors.js'
import { BadLogoutToken, logoutTokenReader } from './logout-token.js'
import type { OidcConfig } from './oidc-config.js'
import type { ProviderDiscovery } from './provider-discovery.js'
import type { SessionMemory } from './session-memory.js'

export interface BackChannelLogoutParts {
  readonly log: Logger
  readonly config: OidcConfig
  readonly discovery: ProviderDiscovery
  readonly memory: SessionMemory
}

const BODY_BYTES = 16 * 1024

/** The provider's own word that somebody has signed out there, which comes without their browser. */
export const backChannelLogout = (app: FastifyInstance, path: string, parts: BackChannelLogoutParts): void => {
  const { log, config, discovery, memory } = parts
  const read = logoutTokenReader(config, discovery)

  const endSessions = async (token: string, requestId: string): Promise<void> => {
    const { sessions, subject, message } = await read(token)
    if (memory.knows(message)) throw new BadLogoutToken('used before')
    for (const name of sessions) await memory.end(name)
    // Last: where the others could not be told, the provider may say it again.
    await memory.end(message)
    log.info({ requestId, subject }, 'the provider has ended a session')
  }

  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: BODY_BYTES },
      (_request, body, done) => done(null, new URLSearchParams(String(body)))
    )
    scope.post(path, { bodyLimit: BODY_BYTES }, async (request: FastifyRequest, reply: FastifyReply) => {
      const [token, another] = (request.body as URLSearchParams | undefined)?.getAll('logout_token') ?? []
      if (token === undefined || another !== undefined) throw refusal('is required, once')
      try {
        await endSessions(token, request.id)
      } catch (error) {
        if (!(error instanceof BadLogoutToken)) throw new Refusal('INTERNAL', { cause: error })
        log.warn({ requestId: request.id, reason: error.message }, 'a logout token was refused')
        throw refusal('is not a logout token that counts here')
      }
      return reply.header('cache-control', 'no-store').send({ success: true })
    })
  })
}

const refusal = (message: string): Refusal =>
  new Refusal('VALIDATION_FAILED', { details: [{ path: '/logout_token', message }] })
