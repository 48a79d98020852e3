import { Type } from '@sinclair/typebox'
import type { ApiDispatcher } from '../api/dispatcher.js'
import { isTooLong, resolveChannel } from '../core/channels.js'
import { DISCONNECT_FORCED, ReplyError } from '../core/codes.js'
import { fieldText } from '../core/json.js'
import type { Cluster } from '../core/survey.js'
import type { AdminParts } from './admin.js'
import { allChannels, CHANNEL_SORTS, channelDetail, channelOrder } from './channels.js'
import { configView } from './config-view.js'
import { allConnections, CONNECTION_SORTS, connectionOrder } from './connections.js'
import type { ActiveConfig, Session, TestPublished } from './contract.js'
import { type AdminCall, CLEAR_SESSION_COOKIE } from './guard.js'
import { Listing, parsePageQuery } from './listing.js'
import type { LiveStreams } from './live.js'
import { IDLE_MS, type SessionClaims, type SessionKeys, type Sessions } from './sessions.js'

// What operators can change. Each leaves a line in the log.

interface ActionLog {
  info(facts: object, message: string): void
}

const PUBLISH = Type.Object(
  { channel: Type.String({ minLength: 1, maxLength: 1024 }), data: Type.Unknown() },
  { additionalProperties: false }
)
const MAX_PUBLISH_BYTES = 64 * 1024

/** The very call that publishers make, so that what is refused there is refused here. */
export const testPublish =
  (calls: ApiDispatcher, log: ActionLog) =>
  (call: AdminCall): Promise<void> =>
    call.body(PUBLISH, MAX_PUBLISH_BYTES, async ({ channel }, text) => {
      // The text that was sent, not one that was written anew; of two equal names nobody knows which one is meant.
      const data = fieldText(text, 'data')
      const request = `{"channel":${JSON.stringify(channel)},"data":${data}}`
      const reply = data === null ? null : await calls.runMethod('publish', Buffer.from(request))
      if (reply === null || reply instanceof ReplyError) {
        call.refuse(400, 'PUBLISH_REFUSED', reply?.message ?? 'data must be there once')
        return
      }
      log.info({ address: call.address, channel }, 'an operator published')
      const { offset = 0, epoch = '' } = JSON.parse(String(reply)).result as Partial<TestPublished>
      call.json({ offset, epoch } satisfies TestPublished)
    })

const DISCONNECT = Type.Object(
  { user: Type.String({ maxLength: 1024 }), client: Type.String({ maxLength: 128 }) },
  { additionalProperties: false }
)
const MAX_DISCONNECT_BYTES = 8192

export const disconnect =
  (cluster: Cluster, log: ActionLog) =>
  (call: AdminCall): Promise<void> =>
    call.body(DISCONNECT, MAX_DISCONNECT_BYTES, async ({ user, client }) => {
      const { code, reason } = DISCONNECT_FORCED
      const params = { target: { user, client, session: '' }, whitelist: [], code, reason }
      const { isConfirmed } = await cluster.apply('disconnect', params)
      log.info({ address: call.address, user, client, isConfirmed }, 'an operator disconnected')
      if (!isConfirmed) {
        call.refuse(503, 'NODES_AWAY', 'Done here; not every other node has confirmed. The relay goes on trying.')
        return
      }
      call.nothing()
    })

export interface RoutesParts extends AdminParts {
  readonly keys: () => SessionKeys
  readonly sessions: Sessions
  readonly streams: LiveStreams
  readonly signIn: (call: AdminCall) => Promise<void>
}

/** The whole API of the page on one screen. */
export const adminRoutes = (parts: RoutesParts): RouteTable => {
  const { relay, config, configTimes, dispatcher, keys, sessions, streams, log } = parts
  const { cluster } = relay
  const { nowMs, monotonicMs } = relay.clocks
  const channels = new Listing(
    (search) => allChannels(cluster, relay.channelRules, nowMs, search),
    channelOrder,
    monotonicMs
  )
  const connections = new Listing((search) => allConnections(cluster, search), connectionOrder, monotonicMs)

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
        const session: Session = { csrf: keys().csrfToken(id), version: relay.version, idleMs: IDLE_MS }
        call.json(session)
      }
    },
    '/admin/api/live': { method: 'GET', access: 'session', handle: (call) => streams.open(call) },
    '/admin/api/channels': {
      method: 'GET',
      access: 'session',
      handle: async (call) => {
        const wanted = parsePageQuery(call.query, CHANNEL_SORTS)
        if (typeof wanted === 'string') call.refuse(400, 'BAD_REQUEST', wanted)
        else call.json(await channels.page(wanted))
      }
    },
    '/admin/api/channel': {
      method: 'GET',
      access: 'session',
      handle: async (call) => {
        const name = call.query.get('name') ?? ''
        const kind = resolveChannel(name, relay.channelRules)
        if (name === '' || isTooLong(name, relay.channelRules)) call.refuse(400, 'BAD_REQUEST', 'name is no channel')
        else if (kind instanceof ReplyError) call.refuse(404, 'UNKNOWN_CHANNEL', 'There is no such namespace.')
        else call.json(await channelDetail(relay, name, kind))
      }
    },
    '/admin/api/connections': {
      method: 'GET',
      access: 'session',
      handle: async (call) => {
        const wanted = parsePageQuery(call.query, CONNECTION_SORTS)
        if (typeof wanted === 'string') call.refuse(400, 'BAD_REQUEST', wanted)
        else call.json(await connections.page(wanted))
      }
    },
    '/admin/api/config': {
      method: 'GET',
      access: 'session',
      handle: (call) => {
        const inForce: ActiveConfig = { config: configView(config()), ...configTimes }
        call.json(inForce)
      }
    },
    '/admin/api/publish': { method: 'POST', access: 'session', handle: testPublish(dispatcher, log) },
    '/admin/api/disconnect': { method: 'POST', access: 'session', handle: disconnect(cluster, log) }
  }
}

/** Needs no session. */
interface OpenRow {
  readonly method: 'GET' | 'POST'
  readonly access: 'everybody'
  handle(call: AdminCall): void | Promise<void>
}

interface SessionRow {
  readonly method: 'GET' | 'POST'
  readonly access: 'session'
  handle(call: AdminCall, session: SessionClaims): void | Promise<void>
}

/** All of the API by path, each with the one method that it has. */
export type RouteTable = Readonly<Record<string, OpenRow | SessionRow>>
