import { Type } from '@sinclair/typebox'
import type { ApiDispatcher } from '../api/dispatcher.js'
import { isTooLong, type ResolvedChannel, resolveChannel } from '../core/channels.js'
import { DISCONNECT_FORCED, ReplyError } from '../core/codes.js'
import { fieldText } from '../core/json.js'
import type { Relay } from '../core/relay.js'
import type { Cluster } from '../core/survey.js'
import type { AdminDependencies } from './admin.js'
import { channelDetail, storedPublication, subscriberCount } from './channel-detail.js'
import { allChannels, CHANNEL_SORTING } from './channel-list.js'
import { configView } from './config-view.js'
import { allConnections, CONNECTION_SORTING, findConnection, SUBSCRIPTION_SORTING } from './connection-list.js'
import type { ActiveConfig, AdminSession, TestPublished } from './contract.js'
import { type AdminCall, CLEAR_SESSION_COOKIE } from './guard.js'
import { Listing, parsePageQuery } from './listing.js'
import type { LiveStreams } from './live.js'
import { IDLE_MS, type SessionClaims, type SessionKeys, type Sessions } from './sessions.js'

// Every change by an operator is logged.

interface ActionLog {
  info(facts: object, message: string): void
}

const PUBLISH = Type.Object(
  {
    channel: Type.String({ minLength: 1, maxLength: 1024 }),
    data: Type.Unknown(),
    isConfirmed: Type.Optional(Type.Boolean())
  },
  { additionalProperties: false }
)
const MAX_PUBLISH_BYTES = 64 * 1024

/** Uses the publish method of the API, with the same checks. */
const testPublish =
  (dispatcher: ApiDispatcher, cluster: Cluster, log: ActionLog) =>
  (call: AdminCall): Promise<void> =>
    call.body(PUBLISH, MAX_PUBLISH_BYTES, async ({ channel, isConfirmed = false }, text) => {
      const subscribers = isConfirmed ? 0 : await subscriberCount(cluster, channel)
      if (subscribers > 0) {
        const clients = subscribers === 1 ? '1 client' : `${subscribers} clients`
        call.reject(409, 'CONFIRMATION_REQUIRED', `${clients} will receive the message.`)
        return
      }
      // Publishes the bytes of `data` unchanged. Null for a duplicate field.
      const data = fieldText(text, 'data')
      const request = `{"channel":${JSON.stringify(channel)},"data":${data}}`
      const reply = data === null ? null : await dispatcher.runMethod('publish', Buffer.from(request))
      if (reply === null || reply instanceof ReplyError) {
        call.reject(400, 'PUBLISH_REFUSED', reply?.message ?? 'data must not be duplicated')
        return
      }
      log.info({ ip: call.address, channel }, 'admin test publication')
      // The result of the publish method has these fields, if the namespace has history.
      const { offset = 0, epoch = '' } = JSON.parse(String(reply)).result as Partial<TestPublished>
      call.json({ offset, epoch } satisfies TestPublished)
    })

const MAX_CLIENT_LENGTH = 128
const DISCONNECT = Type.Object(
  { user: Type.String({ maxLength: 1024 }), client: Type.String({ maxLength: MAX_CLIENT_LENGTH }) },
  { additionalProperties: false }
)
const MAX_DISCONNECT_BYTES = 8192

const disconnect =
  (cluster: Cluster, log: ActionLog) =>
  (call: AdminCall): Promise<void> =>
    call.body(DISCONNECT, MAX_DISCONNECT_BYTES, async ({ user, client }) => {
      const { code, reason } = DISCONNECT_FORCED
      const params = { target: { user, client, session: '' }, whitelist: [], code, reason }
      const { isConfirmed } = await cluster.apply('disconnect', params)
      log.info({ ip: call.address, user, client, isConfirmed }, 'admin disconnect')
      if (!isConfirmed) {
        call.reject(
          503,
          'NODES_AWAY',
          'Done at this node, but not confirmed by all other nodes. The relay keeps trying.'
        )
        return
      }
      call.noContent()
    })

const sendPage =
  <Row, Sort extends string>(listing: Listing<Row, Sort>) =>
  async (call: AdminCall): Promise<void> => {
    const query = parsePageQuery(call.query, listing.sorting)
    if (typeof query === 'string') call.reject(400, 'BAD_REQUEST', query)
    else call.json(await listing.page(query))
  }

/** The channel of a request. Responds with an error and returns null if there is no such channel. */
const channelOf = (call: AdminCall, field: string, relay: Relay): [name: string, resolved: ResolvedChannel] | null => {
  const name = call.query.get(field) ?? ''
  const resolved = resolveChannel(name, relay.channelRules)
  if (name === '' || isTooLong(name, relay.channelRules)) call.reject(400, 'BAD_REQUEST', `${field} must be a channel`)
  else if (resolved instanceof ReplyError) call.reject(404, 'UNKNOWN_CHANNEL', 'Unknown namespace.')
  else return [name, resolved]
  return null
}

const sendChannel =
  (relay: Relay) =>
  async (call: AdminCall): Promise<void> => {
    const channel = channelOf(call, 'name', relay)
    if (channel !== null) call.json(await channelDetail(relay, ...channel))
  }

const sendPublication =
  (relay: Relay) =>
  async (call: AdminCall): Promise<void> => {
    const channel = channelOf(call, 'channel', relay)
    if (channel === null) return
    const offset = Number(call.query.get('offset') ?? '')
    if (!Number.isSafeInteger(offset) || offset < 1) {
      call.reject(400, 'BAD_REQUEST', 'offset must be a whole number from 1')
      return
    }
    const publication = await storedPublication(relay, ...channel, offset)
    if (publication === null) call.reject(404, 'NOT_IN_HISTORY', 'The publication is no longer in the history.')
    else call.json(publication)
  }

const sendConnection =
  (cluster: Cluster) =>
  async (call: AdminCall): Promise<void> => {
    const query = parsePageQuery(call.query, SUBSCRIPTION_SORTING)
    const client = call.query.get('client') ?? ''
    if (typeof query === 'string') call.reject(400, 'BAD_REQUEST', query)
    else if (client === '' || client.length > MAX_CLIENT_LENGTH)
      call.reject(400, 'BAD_REQUEST', 'client must be the id of a connection')
    else {
      const connection = await findConnection(cluster, { ...query, client })
      if (connection === null) call.reject(404, 'NOT_CONNECTED', 'The connection is closed.')
      else if (connection === undefined) call.reject(503, 'NODES_AWAY', 'Not all nodes respond.')
      else call.json(connection)
    }
  }

export interface RouteDependencies extends AdminDependencies {
  readonly keys: () => SessionKeys
  readonly sessions: Sessions
  readonly streams: LiveStreams
  readonly signIn: (call: AdminCall) => Promise<void>
}

/** The complete API of the page. */
export const adminRoutes = (dependencies: RouteDependencies): AdminRoutes => {
  const { relay, config, configTimes, dispatcher, keys, sessions, streams, log } = dependencies
  const { cluster } = relay
  const { monotonicMs } = relay.clocks
  const channels = new Listing(
    (filter) => allChannels(cluster, relay.channelRules, relay.clocks, filter),
    CHANNEL_SORTING,
    monotonicMs
  )
  const connections = new Listing((filter) => allConnections(cluster, filter), CONNECTION_SORTING, monotonicMs)

  return {
    '/admin/api/sign-in': { method: 'POST', access: 'public', handle: dependencies.signIn },
    '/admin/api/sign-out': {
      method: 'POST',
      access: 'session',
      handle: async (call, session) => {
        await sessions.end(session)
        call.cookie = CLEAR_SESSION_COOKIE
        call.noContent()
      }
    },
    '/admin/api/session': {
      method: 'GET',
      access: 'session',
      handle: (call, { id }) => {
        const session: AdminSession = { csrf: keys().csrfToken(id), version: relay.version, idleMs: IDLE_MS }
        call.json(session)
      }
    },
    '/admin/api/live': { method: 'GET', access: 'session', handle: (call) => streams.open(call) },
    '/admin/api/channels': { method: 'GET', access: 'session', handle: sendPage(channels) },
    '/admin/api/channel': { method: 'GET', access: 'session', handle: sendChannel(relay) },
    '/admin/api/publication': { method: 'GET', access: 'session', handle: sendPublication(relay) },
    '/admin/api/connections': { method: 'GET', access: 'session', handle: sendPage(connections) },
    '/admin/api/connection': { method: 'GET', access: 'session', handle: sendConnection(cluster) },
    '/admin/api/config': {
      method: 'GET',
      access: 'session',
      handle: (call) => {
        const active: ActiveConfig = { config: configView(config()), ...configTimes }
        call.json(active)
      }
    },
    '/admin/api/publish': { method: 'POST', access: 'session', handle: testPublish(dispatcher, cluster, log) },
    '/admin/api/disconnect': { method: 'POST', access: 'session', handle: disconnect(cluster, log) }
  }
}

interface PublicRoute {
  readonly method: 'GET' | 'POST'
  readonly access: 'public'
  handle(call: AdminCall): void | Promise<void>
}

interface SessionRoute {
  readonly method: 'GET' | 'POST'
  readonly access: 'session'
  handle(call: AdminCall, session: SessionClaims): void | Promise<void>
}

/** Routes by path. Every path has one method. */
export type AdminRoutes = Readonly<Record<string, PublicRoute | SessionRoute>>
