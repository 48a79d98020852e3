import type { FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import type { Method } from '../../src/gateway/routes/declare.js'
import type { Caller, May } from './auth/permissions.js'
import type { Tokens } from './auth/tokens.js'
import type { Database, Fields, World } from './world.js'

/** All that routes work with, whatever is asked. */
export interface Backend extends World {
  readonly database: Database
  readonly tokens: Tokens
  readonly relayUrl: string
  /** What the gateway sends with the identity-provider exchange; null where none is agreed on. */
  readonly exchangeSecret: string | null
}

/** One request, and what is needed to answer it. */
export interface Call extends Omit<Backend, 'database'>, World {
  readonly params: Readonly<Record<string, string>>
  readonly query: Fields
  readonly body: Fields
  /** There unless the route is public. */
  readonly caller: Caller | null
  readonly request: FastifyRequest
}

/** What is answered where that is more than `data`. */
export type Answer = (reply: FastifyReply) => unknown

/**
 * Answered with `{ success: true, data }`, unless it is an `Answer`. Whatever a route does for somebody who is signed in is
 * done in whole or not at all.
 */
export type Run = (call: Call) => unknown

export interface Handler {
  readonly may: May
  readonly run: Run
  /** Whether it is also for those who must change their password before anything else. */
  readonly orChangingPassword?: boolean
  /** The status of a success, where it is not 200. */
  readonly status?: number
  /** What else the framework is told. */
  readonly options?: Pick<RouteShorthandOptions, 'bodyLimit' | 'config'>
}

export type RouteKey = `${Method} /api/${string}`

/** By method and path, as the gateway declares them. */
export type Handlers = Readonly<Record<RouteKey, Handler>>

export const handler = (may: May, run: Run, more: Omit<Handler, 'may' | 'run'> = {}): Handler => ({ may, run, ...more })

/** With a name it is saved, without one it is shown. */
export const fileAnswer = (mediaType: string, content: string | Buffer, name: string | null = null): Answer => {
  const disposition = name === null ? 'inline' : `attachment; filename="${name}"`
  return (reply) => reply.type(mediaType).header('content-disposition', disposition).send(content)
}

/** For the routes that cost more than others. */
export const perMinute = (max: number) => ({ options: { config: { rateLimit: { max, timeWindow: '1 minute' } } } })

/** Only for routes that are not public: the access check has seen to it. */
export const callerOf = ({ caller }: Call): Caller => {
  if (caller === null) throw new Error('a route without a caller asks who it is')
  return caller
}

export const idOf = ({ params: { id, floorId, contactId, deviceId } }: Call): string =>
  id ?? floorId ?? contactId ?? deviceId ?? ''

export const idsIn = (body: Fields): string[] => (Array.isArray(body.ids) ? body.ids.map(String) : [])
