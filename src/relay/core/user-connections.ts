import type { MaybePromise } from './broker.js'
import { EngineError } from './broker.js'
import type { Client } from './client.js'
import { type RelayContext, runInBackground } from './context.js'

/** A connection of a user, at one of the nodes. */
export interface UserConnection {
  readonly user: string
  readonly node: string
  readonly client: string
}

/** The connections of each user at all nodes, counted for `user_connection_limit`. */
export interface UserConnections {
  /**
   * Null if the connection is counted. If the user has as many as the limit already: those of them that may be gone, because
   * their node could not say so.
   */
  add(client: UserConnection, limit: number): MaybePromise<readonly UserConnection[] | null>
  remove(client: UserConnection): MaybePromise<void>
}

/** Whether the user may have this connection too; it is counted then. */
export const countConnection = (client: Client): MaybePromise<boolean> => {
  const limit = client.context.clientOptions.userConnectionLimit
  if (client.user === '' || limit <= 0) return true
  // From here on its end takes it out again.
  client.isUserCounted = true
  const entry = entryOf(client)
  const added = client.context.userConnections.add(entry, limit)
  if (added instanceof Promise) return countLater(client, entry, limit, added)
  client.isUserCounted = added === null
  return client.isUserCounted
}

const countLater = async (
  client: Client,
  entry: UserConnection,
  limit: number,
  added: Promise<readonly UserConnection[] | null>
): Promise<boolean> => {
  const { context } = client
  try {
    const others = await added
    if (others === null) return true
    const gone = await goneConnections(context, others)
    if (gone.length === 0) return false
    for (const each of gone) await context.userConnections.remove(each)
    const isCounted = (await context.userConnections.add(entry, limit)) === null
    // It was taken out at its end, which came before it was put in.
    if (isCounted && client.isClosed) await context.userConnections.remove(entry)
    return isCounted
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    // While the engine is away each node counts for itself.
    return context.clients.countOfUser(entry.user) <= limit
  }
}

/** Those whose node says that it does not have them, or does not answer. */
const goneConnections = async (
  { cluster }: RelayContext,
  connections: readonly UserConnection[]
): Promise<readonly UserConnection[]> => {
  const nodes = [...new Set(connections.map(({ node }) => node))]
  const gone = nodes.map(async (node) => {
    const there = connections.filter((each) => each.node === node)
    const clients = await cluster.surveyNode(node, 'userClients', there[0]?.user ?? '')
    return there.filter(({ client }) => !clients?.includes(client))
  })
  return (await Promise.all(gone)).flat()
}

/** For connections that came before there was a limit. */
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
