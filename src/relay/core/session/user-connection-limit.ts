import { EngineError, type UserConnection } from '../engine.js'
import { after, type MaybePromise, orElse } from '../maybe-promise.js'
import type { Client } from './client.js'
import { type RelayContext, runInBackground } from './context.js'

/** A user with a single connection is below any limit. */
export const isLimitedByUser = ({ user, context: { clientOptions } }: Client): boolean =>
  user !== '' && clientOptions.userConnectionLimit > 0 && !clientOptions.singleConnection

/** Counts a connection that is limited by its user. Returns false if the user has reached the limit. */
export const countConnection = (client: Client): MaybePromise<boolean> => {
  const { context } = client
  const limit = context.clientOptions.userConnectionLimit
  // Set before anything is awaited: if the client is closed meanwhile, the connection is removed again.
  client.isUserCounted = true
  const entry = entryOf(client)
  return orElse(
    () =>
      after(
        context.userConnections.add(entry, limit),
        (others) => others === null || countAmong(client, entry, limit, others)
      ),
    (error) => {
      if (!(error instanceof EngineError)) throw error
      // While the engine is down, each node counts its own connections.
      return context.clients.countOfUser(entry.user) <= limit
    }
  )
}

const countAmong = async (
  client: Client,
  entry: UserConnection,
  limit: number,
  others: readonly UserConnection[]
): Promise<boolean> => {
  const isCounted = await replaceStale(client, entry, limit, others)
  if (!isCounted && !client.isClosed) client.isUserCounted = false
  return isCounted
}

/** Removes stale connections and tries again. */
const replaceStale = async (
  client: Client,
  entry: UserConnection,
  limit: number,
  others: readonly UserConnection[]
): Promise<boolean> => {
  const { context } = client
  const { userConnections } = context
  const stale = await staleConnections(context, others)
  if (stale.length === 0) return false
  for (const each of stale) await userConnections.remove(each)
  try {
    return (await userConnections.add(entry, limit)) === null
  } finally {
    // The client was closed, and the connection removed, before it was added. A failed attempt would be repeated.
    if (client.isClosed) await userConnections.remove(entry)
  }
}

/** The surveys without a response take longer than the lease of a dead node. */
const MAX_SURVEYS = 5

/** Connections that their node does not have, or whose node has left. Those of a node that is too busy to respond are not stale. */
const staleConnections = async (
  { cluster, surveys }: RelayContext,
  connections: readonly UserConnection[]
): Promise<readonly UserConnection[]> => {
  const nodes = [...new Set(connections.map(({ node }) => node))]
  const stale = nodes.map(async (node) => {
    const ofNode = connections.filter((each) => each.node === node)
    const user = ofNode[0]?.user ?? ''
    for (let attempt = 0; await cluster.hasNode(node); attempt++) {
      if (attempt === MAX_SURVEYS) return []
      const clients = await surveys.surveyNode(node, 'userClients', user)
      if (clients !== null) return ofNode.filter(({ client }) => !clients.includes(client))
    }
    return ofNode
  })
  return (await Promise.all(stale)).flat()
}

/** Counts the connections that were opened before a limit was configured. */
export const countEarlierConnections = (context: RelayContext): void => {
  for (const client of context.clients.all) {
    if (client.state !== 'live' || client.user === '' || client.isUserCounted) continue
    client.isUserCounted = true
    runInBackground(context, () => context.userConnections.add(entryOf(client), Number.POSITIVE_INFINITY))
  }
}

export const uncountConnection = (client: Client): void => {
  if (!client.isUserCounted) return
  const { context } = client
  runInBackground(context, () => context.userConnections.remove(entryOf(client)))
}

const entryOf = ({ user, id: client, context: { node } }: Client): UserConnection => ({ user, node, client })
