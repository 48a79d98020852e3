import type { FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import type { HttpMethod } from '../../src/gateway/routes/tables/declare.js'
import type { Publisher } from '../../src/shared/publisher.js'
import type { Caller, May } from './auth/permissions.js'
import type { Tokens } from './auth/tokens.js'
import type { DemoConfig } from './config.js'
import type { PositionHistory } from './positions/history.js'
import type { Database, Fields, World } from './world.js'

/** The services that all routes use. */
export interface Backend extends World {
  readonly database: Database
  readonly tokens: Tokens
  readonly publisher: Pick<Publisher, 'publish'>
  readonly relayUrl: string
  /** The secret that the gateway sends with the exchange; null if none is configured. */
  readonly exchangeSecret: string | null
  readonly history: PositionHistory
  /** The relay's HTTP API. */
  readonly publish: DemoConfig['publish']
  /** The secret of the relay's events; null if the relay sends none. */
  readonly eventsSecret: string | null
}

/** One request with the services of its route. */
export interface Call extends Omit<Backend, 'database'>, World {
  readonly params: Readonly<Record<string, string>>
  readonly query: Fields
  readonly body: Fields
  /** Present unless the route is public. */
  readonly caller: Caller | null
  readonly request: FastifyRequest
}

/** A response with more than `data`. */
export type CustomReply = (reply: FastifyReply) => unknown

/**
 * The result is sent as `{ success: true, data }`, unless it is a `CustomReply`. Routes for signed-in users run in a
 * transaction.
 */
export type Run = (call: Call) => unknown

export interface Handler {
  readonly may: May
  readonly run: Run
  /** Whether users who must change their password may call it. */
  readonly orChangingPassword?: boolean
  /** Whether users may call it with their own id, without the permission. */
  readonly orOwnAccount?: boolean
  /** The status of a success; 200 by default. */
  readonly status?: number
  /** Further options of the Fastify route. */
  readonly options?: Pick<RouteShorthandOptions, 'bodyLimit' | 'config'>
}

/** By method and path, as declared by the gateway. */
export type Handlers = Readonly<Record<`${HttpMethod} /api/${string}`, Handler>>

export const handler = (may: May, run: Run, more: Omit<Handler, 'may' | 'run'> = {}): Handler => ({ may, run, ...more })

/** With a name, the browser saves the file; without one, it shows it. */
export const fileReply = (mediaType: string, content: string | Buffer, name: string | null = null): CustomReply => {
  const disposition = name === null ? 'inline' : `attachment; filename="${name}"`
  return (reply) => reply.type(mediaType).header('content-disposition', disposition).send(content)
}

/** For expensive routes. */
export const perMinute = (max: number) => ({ options: { config: { rateLimit: { max, timeWindow: '1 minute' } } } })

/** Only for routes that are not public: the access check has set the user. */
export const callerOf = ({ caller }: Call): Caller => {
  if (caller === null) throw new Error('a public route has no caller')
  return caller
}

export const idOf = ({ params: { id, floorId, contactId, deviceId } }: Call): string =>
  id ?? floorId ?? contactId ?? deviceId ?? ''

/** The rows in a list of a body; empty if it is not a list. */
export const rowsIn = (value: unknown): Fields[] => (Array.isArray(value) ? value : [])

export const idsIn = (body: Fields): string[] => (Array.isArray(body.ids) ? body.ids.map(String) : [])
