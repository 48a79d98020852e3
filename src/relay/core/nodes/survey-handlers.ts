import type { NodeInfo } from '../node-requests.js'
import type { RelayContext } from '../session/context.js'
import { channelPage } from './subscriber-counts.js'
import { disconnectUser, invalidateTokens, refreshUser, subscribeUser, unsubscribeUser } from './user-commands.js'

/** Adds the handlers for the surveys of the core, which act on the connections of this node. */
export const handleCoreSurveys = (context: RelayContext, stats: () => NodeStats): void => {
  const { surveys } = context
  surveys.handle('info', () => nodeInfo(context, stats()))
  surveys.handle('channelPage', (params) => channelPage(context, params))
  surveys.handle('disconnect', (params) => disconnectUser(context, params))
  surveys.handle('unsubscribe', (params) => unsubscribeUser(context, params))
  surveys.handle('subscribe', (params) => subscribeUser(context, params))
  surveys.handle('refresh', (params) => refreshUser(context, params))
  surveys.handle('invalidateTokens', (params) => invalidateTokens(context, params))
  surveys.handle('userClients', (user) => context.clients.ofUser(user).map(({ id }) => id))
  surveys.handle('emulate', ({ session, data, encoding }) => {
    const client = context.sessions.get(session)
    client?.handleFrame(encoding === undefined ? data : Buffer.from(data, encoding))
    return client !== undefined
  })
}

interface NodeStats {
  readonly clients: number
  readonly users: number
  readonly channels: number
  readonly subscriptions: number
}

const nodeInfo = (context: RelayContext, { clients, users, channels, subscriptions }: NodeStats): NodeInfo => {
  const { uptimeSeconds, memoryBytes } = context.processStats()
  return {
    uid: context.node,
    name: context.name,
    version: context.version,
    num_clients: clients,
    num_users: users,
    num_subs: subscriptions,
    num_channels: channels,
    uptime: Math.floor(uptimeSeconds),
    process: { rss: memoryBytes }
  }
}
