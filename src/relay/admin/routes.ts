import { channelKind, isTooLong } from '../core/channels.js'
import { ReplyError } from '../core/errors.js'
import type { ApiCalls } from '../edge/api-calls.js'
import { disconnect, testPublish } from './actions.js'
import type { AdminParts } from './admin.js'
import type { AdminCall } from './call.js'
import { channelDetail } from './channel-detail.js'
import { allChannels, CHANNEL_SORTS, channelOrder } from './channel-rows.js'
import { configView } from './config-view.js'
import { allConnections, CONNECTION_SORTS, connectionOrder } from './connection-rows.js'
import type { ConfigInForce, Session } from './contract.js'
import { CLEAR_SESSION_COOKIE } from './cookies.js'
import { Listing } from './listing.js'
import type { LiveStreams } from './live.js'
import { pageWanted } from './page-wanted.js'
import type { RouteTable } from './route-table.js'
import type { SessionKeys } from './session-keys.js'
import { IDLE_MS, type Sessions } from './sessions.js'

export interface RoutesParts extends AdminParts {
  readonly calls: ApiCalls
  readonly keys: () => SessionKeys
  readonly sessions: Sessions
  readonly streams: LiveStreams
  readonly signIn: (call: AdminCall) => Promise<void>
}

/** The whole API of the page on one screen. */
export const adminRoutes = (parts: RoutesParts): RouteTable => {
  const { relay, config, configTimes, calls, keys, sessions, streams, log } = parts
  const { context } = relay
  const { fleet, nowMs, monotonicMs } = context
  const channels = new Listing(
    (search) => allChannels(fleet, context.channels, nowMs, search),
    channelOrder,
    monotonicMs
  )
  const connections = new Listing((search) => allConnections(fleet, search), connectionOrder, monotonicMs)

  return {
    '/admin/api/sign-in': { method: 'POST', access: 'everybody', handle: parts.signIn },
    '/admin/api/sign-out': {
      method: 'POST',
      access: 'session',
      handle: async (call, session) => {
        await sessions.end(session)
        call.cookie = CLEAR_SESSION_COOKIE
        call.nothing()
      }
    },
    '/admin/api/session': {
      method: 'GET',
      access: 'session',
      handle: (call, { id }) => {
        const session: Session = { csrf: keys().csrfToken(id), version: context.version, idleMs: IDLE_MS }
        call.json(session)
      }
    },
    '/admin/api/live': { method: 'GET', access: 'session', handle: (call) => streams.open(call) },
    '/admin/api/channels': {
      method: 'GET',
      access: 'session',
      handle: async (call) => {
        const wanted = pageWanted(call.query, CHANNEL_SORTS)
        if (typeof wanted === 'string') call.refuse(400, 'BAD_REQUEST', wanted)
        else call.json(await channels.page(wanted))
      }
    },
    '/admin/api/channel': {
      method: 'GET',
      access: 'session',
      handle: async (call) => {
        const name = call.query.get('name') ?? ''
        const kind = channelKind(name, context.channels)
        if (name === '' || isTooLong(name, context.channels)) call.refuse(400, 'BAD_REQUEST', 'name is no channel')
        else if (kind instanceof ReplyError) call.refuse(404, 'UNKNOWN_CHANNEL', 'There is no such namespace.')
        else call.json(await channelDetail(context, name, kind))
      }
    },
    '/admin/api/connections': {
      method: 'GET',
      access: 'session',
      handle: async (call) => {
        const wanted = pageWanted(call.query, CONNECTION_SORTS)
        if (typeof wanted === 'string') call.refuse(400, 'BAD_REQUEST', wanted)
        else call.json(await connections.page(wanted))
      }
    },
    '/admin/api/config': {
      method: 'GET',
      access: 'session',
      handle: (call) => {
        const inForce: ConfigInForce = { config: configView(config()), ...configTimes }
        call.json(inForce)
      }
    },
    '/admin/api/publish': { method: 'POST', access: 'session', handle: testPublish(calls, log) },
    '/admin/api/disconnect': { method: 'POST', access: 'session', handle: disconnect(fleet, log) }
  }
}
