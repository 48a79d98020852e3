import { Type } from '@sinclair/typebox'
import { MemberSearch, memberText } from '../core/codec/json-members.js'
import { DISCONNECT_FORCED, ERROR_NOT_AVAILABLE, ReplyError } from '../core/codes.js'
import { EngineError } from '../core/engine.js'
import { sendBackends, sendRevocations } from './backend-routes.js'
import { channelDetail, storedPublication } from './channel-detail.js'
import { CHANNEL_SORTING, channelListPage, channelRows } from './channel-list.js'
import { configView } from './config-view.js'
import { CONNECTION_SORTING, connectionPage, findConnection, SUBSCRIPTION_SORTING } from './connection-list.js'
import type { ActiveConfig, AdminSession, Page, TestPublished } from './contract.js'
import { type AdminCall, type AdminRoutes, CLEAR_SESSION_COOKIE, type SessionRoute } from './guard.js'
import { type PageQuery, parsePageQuery, type Sorting } from './listing.js'
import { removeKey, sendMap } from './map-routes.js'
import { requestedChannel } from './requested-channel.js'
import type { RouteDependencies } from './route-dependencies.js'
import { IDLE_MS } from './sessions.js'

// Every change by an operator is logged.

const PUBLISH = Type.Object(
  {
    channel: Type.String({ minLength: 1, maxLength: 1024 }),
    data: Type.Unknown(),
    isConfirmed: Type.Optional(Type.Boolean())
  },
  { additionalProperties: false }
)
const MAX_PUBLISH_BYTES = 64 * 1024

const DATA = new MemberSearch(['data'])

/** Uses the publish method of the API, with the same checks. */
const testPublish =
  ({ dispatcher, surveys, relay, log }: RouteDependencies) =>
  (call: AdminCall): Promise<void> =>
    call.body(PUBLISH, MAX_PUBLISH_BYTES, async ({ channel, isConfirmed = false }, text) => {
      const [row] = isConfirmed ? [] : await channelRows(surveys, relay.channelRules, [channel])
      const subscribers = row?.subscribers ?? 0
      if (subscribers > 0) {
        const clients = subscribers === 1 ? '1 client' : `${subscribers} clients`
        call.reject(409, 'CONFIRMATION_REQUIRED', `${clients} will receive the message.`)
        return
      }
      // Publishes the bytes of `data` unchanged. Null for a duplicate field.
      const data = memberText(text, DATA)
      const request = `{"channel":${JSON.stringify(channel)},"data":${data}}`
      const reply = data === null ? null : await dispatcher.runMethod('publish', Buffer.from(request))
      if (reply === null || reply instanceof ReplyError) {
        call.reject(400, 'PUBLISH_REJECTED', reply?.message ?? 'data must not be duplicated')
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
  ({ relay, log }: RouteDependencies) =>
  (call: AdminCall): Promise<void> =>
    call.body(DISCONNECT, MAX_DISCONNECT_BYTES, async ({ user, client }) => {
      const { code, reason } = DISCONNECT_FORCED
      const params = { target: { user, client, session: '' }, whitelist: [], code, reason }
      const { isConfirmed } = await relay.cluster.apply('disconnect', params)
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

const SIGN_OUT_USER = Type.Object(
  { user: Type.String({ minLength: 1, maxLength: 1024 }) },
  { additionalProperties: false }
)

/** Closes the connections of a user and rejects all tokens that were issued up to now. */
const signOutUser =
  ({ relay, log }: RouteDependencies) =>
  (call: AdminCall): Promise<void> =>
    call.body(SIGN_OUT_USER, MAX_DISCONNECT_BYTES, async ({ user }) => {
      const issuedBefore = Math.floor(relay.clocks.nowMs() / 1000)
      try {
        const error = await relay.invalidateTokens(user, '', issuedBefore)
        log.info({ ip: call.address, user, isDone: error === null }, 'admin sign-out of a user')
        if (error === null) call.noContent()
        else if (error === ERROR_NOT_AVAILABLE)
          call.reject(409, 'NOT_ENABLED', 'client.user_tokens_invalidate is not enabled in the configuration.')
        else call.reject(503, 'REJECTED', error.message)
      } catch (error) {
        if (!(error instanceof EngineError)) throw error
        log.info({ ip: call.address, user, isDone: false }, 'admin sign-out of a user')
        call.reject(503, 'NODES_AWAY', 'Not confirmed by all nodes. Repeat it.')
      }
    })

const sendPage =
  <Row, Sort extends string>(sorting: Sorting<Row, Sort>, read: (query: PageQuery<Sort>) => Promise<Page<Row>>) =>
  async (call: AdminCall): Promise<void> => {
    const query = parsePageQuery(call.query, sorting)
    if (typeof query === 'string') call.reject(400, 'BAD_REQUEST', query)
    else call.json(await read(query))
  }

const sendChannel =
  ({ surveys, relay }: RouteDependencies) =>
  async (call: AdminCall): Promise<void> => {
    const channel = requestedChannel(call, 'name', relay)
    if (channel !== null) call.json(await channelDetail(surveys, relay, ...channel))
  }

const sendPublication =
  ({ relay }: RouteDependencies) =>
  async (call: AdminCall): Promise<void> => {
    const channel = requestedChannel(call, 'channel', relay)
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
  ({ surveys, relay }: RouteDependencies) =>
  async (call: AdminCall): Promise<void> => {
    const query = parsePageQuery(call.query, SUBSCRIPTION_SORTING)
    const client = call.query.get('client') ?? ''
    if (typeof query === 'string') call.reject(400, 'BAD_REQUEST', query)
    else if (client === '' || client.length > MAX_CLIENT_LENGTH)
      call.reject(400, 'BAD_REQUEST', 'client must be the id of a connection')
    else {
      const connection = await findConnection(surveys, relay, { ...query, client })
      if (connection === null) call.reject(404, 'NOT_CONNECTED', 'The connection is closed.')
      else if (connection === undefined) call.reject(503, 'NODES_AWAY', 'Not all nodes respond.')
      else call.json(connection)
    }
  }

/** The complete API of the page. */
export const adminRoutes = (dependencies: RouteDependencies): AdminRoutes => {
  const { relay, surveys, config, configTimes, keys, sessions, streams } = dependencies
  return {
    '/admin/api/sign-in': { method: 'POST', access: 'public', handle: dependencies.signIn },
    '/admin/api/sign-out': sessionRoute('POST', async (call, session) => {
      await sessions.end(session)
      call.cookie = CLEAR_SESSION_COOKIE
      call.noContent()
    }),
    '/admin/api/session': sessionRoute('GET', (call, { id }) => {
      const session: AdminSession = { csrf: keys().csrfToken(id), version: relay.version, idleMs: IDLE_MS }
      call.json(session)
    }),
    '/admin/api/live': sessionRoute('GET', (call) => streams.open(call)),
    '/admin/api/channels': sessionRoute(
      'GET',
      sendPage(CHANNEL_SORTING, (query) => channelListPage(surveys, relay, query))
    ),
    '/admin/api/channel': sessionRoute('GET', sendChannel(dependencies)),
    '/admin/api/map': sessionRoute('GET', sendMap(dependencies)),
    '/admin/api/map/remove': sessionRoute('POST', removeKey(dependencies)),
    '/admin/api/publication': sessionRoute('GET', sendPublication(dependencies)),
    '/admin/api/connections': sessionRoute(
      'GET',
      sendPage(CONNECTION_SORTING, (query) => connectionPage(surveys, query))
    ),
    '/admin/api/connection': sessionRoute('GET', sendConnection(dependencies)),
    '/admin/api/backends': sessionRoute('GET', sendBackends(dependencies)),
    '/admin/api/revocations': sessionRoute('GET', sendRevocations(dependencies)),
    '/admin/api/config': sessionRoute('GET', (call) => {
      const active: ActiveConfig = { config: configView(config()), ...configTimes }
      call.json(active)
    }),
    '/admin/api/publish': sessionRoute('POST', testPublish(dependencies)),
    '/admin/api/disconnect': sessionRoute('POST', disconnect(dependencies)),
    '/admin/api/sign-out-user': sessionRoute('POST', signOutUser(dependencies))
  }
}

const sessionRoute = (method: SessionRoute['method'], handle: SessionRoute['handle']): SessionRoute => ({
  method,
  access: 'session',
  handle
})
