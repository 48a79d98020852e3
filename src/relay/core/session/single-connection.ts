import { personalChannel } from '../channel-names.js'
import { DISCONNECT_CONNECTION_LIMIT } from '../codes.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { ConnectionOrder } from '../node-requests.js'
import type { Client } from './client.js'
import { runInBackground } from './context.js'

/** When each client connected, in milliseconds since 1970. Different for the clients of a process, so that their order is exact. */
const connectedAt = new WeakMap<Client, number>()
let latest = 0
const STEP_MS = 0.001

/** With the option, a user has one connection: a new one closes the earlier ones, at all nodes. */
export const closeEarlierConnections = (client: Client): MaybePromise<void> => {
  const { user, context } = client
  if (user === '' || !context.clientOptions.singleConnection) return
  latest = Math.max(context.nowMs(), latest + STEP_MS)
  connectedAt.set(client, latest)
  return closeOthers(client, { connectedAt: latest, client: client.id })
}

/** Of two clients that connect at the same time, one is earlier at every node: they must not close each other. */
export const isEarlier = (client: Client, other: ConnectionOrder): boolean => {
  const time = connectedAt.get(client) ?? 0
  return time < other.connectedAt || (time === other.connectedAt && client.id < other.client)
}

const closeOthers = async (client: Client, earlierThan: ConnectionOrder): Promise<void> => {
  const { user, id, context } = client
  const { clients, clientOptions, channelRules, presence, surveys } = context
  // The presence has the connections at other nodes: without any, no command to all nodes is needed.
  const channel = personalChannel(user, clientOptions.personalChannelNamespace, channelRules)
  const hasOthers = clients.countOfUser(user) > 1 || (await presence.count(channel)).clients > 0
  // A later connection may have closed this one meanwhile.
  if (!hasOthers || client.isClosed) return
  const target = { user, client: '', session: '' }
  // Not awaited: the presence may have connections of a crashed node, which does not confirm the command.
  runInBackground(context, () =>
    surveys.apply('disconnect', { target, whitelist: [id], earlierThan, ...DISCONNECT_CONNECTION_LIMIT })
  )
}
