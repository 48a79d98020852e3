import { personalChannel } from '../channel-names.js'
import { DISCONNECT_CONNECTION_LIMIT } from '../codes.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { Client } from './client.js'
import { runInBackground } from './context.js'

/** With the option, a user has one connection: a new one closes the earlier ones, at all nodes. */
export const closeEarlierConnections = (client: Client): MaybePromise<void> => {
  const { user, context } = client
  if (user !== '' && context.clientOptions.singleConnection) return closeOthers(client)
}

const closeOthers = async (client: Client): Promise<void> => {
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
    surveys.apply('disconnect', { target, whitelist: [id], ...DISCONNECT_CONNECTION_LIMIT })
  )
}
