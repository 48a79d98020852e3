import type { Connection } from './connection.js'
import type { Context } from './context.js'
import { EngineFault } from './engine-fault.js'
import { inBackground } from './leave-channel.js'
import type { MaybePromise } from './maybe-promise.js'

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
  add(connection: UserConnection, limit: number): MaybePromise<readonly UserConnection[] | null>
  remove(connection: UserConnection): MaybePromise<void>
}

/** Whether the user may have this connection too; it is counted then. */
export const countConnection = (connection: Connection): MaybePromise<boolean> => {
  const limit = connection.context.client.userConnectionLimit
  if (connection.user === '' || limit <= 0) return true
  // From here on its end takes it out again.
  connection.isUserCounted = true
  const entry = entryOf(connection)
  const added = connection.context.userConnections.add(entry, limit)
  if (added instanceof Promise) return countLater(connection, entry, limit, added)
  connection.isUserCounted = added === null
  return connection.isUserCounted
}

const countLater = async (
  connection: Connection,
  entry: UserConnection,
  limit: number,
  added: Promise<readonly UserConnection[] | null>
): Promise<boolean> => {
  const { context } = connection
  try {
    const others = await added
    if (others === null) return true
    const gone = await goneConnections(context, others)
    if (gone.length === 0) return false
    for (const each of gone) await context.userConnections.remove(each)
    const isCounted = (await context.userConnections.add(entry, limit)) === null
    // It was taken out at its end, which came before it was put in.
    if (isCounted && connection.isEnded) await context.userConnections.remove(entry)
    return isCounted
  } catch (error) {
    if (!(error instanceof EngineFault)) throw error
    // While the engine is away each node counts for itself.
    return context.roster.countOfUser(entry.user) <= limit
  }
}

/** Those whose node says that it does not have them, or does not answer. */
const goneConnections = async (
  { fleet }: Context,
  connections: readonly UserConnection[]
): Promise<readonly UserConnection[]> => {
  const nodes = [...new Set(connections.map(({ node }) => node))]
  const gone = nodes.map(async (node) => {
    const there = connections.filter((each) => each.node === node)
    const clients = await fleet.askOne(node, 'userClients', there[0]?.user ?? '')
    return there.filter(({ client }) => !clients?.includes(client))
  })
  return (await Promise.all(gone)).flat()
}

/** For connections that came before there was a limit. */
export const countEarlierConnections = (context: Context): void => {
  for (const connection of context.roster.all) {
    if (connection.state !== 'live' || connection.user === '' || connection.isUserCounted) continue
    connection.isUserCounted = true
    inBackground(context, () => context.userConnections.add(entryOf(connection), Number.POSITIVE_INFINITY))
  }
}

export const uncountConnection = (connection: Connection): void => {
  if (!connection.isUserCounted) return
  const { context } = connection
  inBackground(context, () => context.userConnections.remove(entryOf(connection)))
}

const entryOf = ({ user, client, context: { node } }: Connection): UserConnection => ({ user, node, client })
