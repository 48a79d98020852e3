import type { UserConnection, UserConnections } from '../core/user-connections.js'
import type { Link } from './link.js'

/** A worker's side: the primary counts the connections of all workers. */
export class WorkerUserConnections implements UserConnections {
  readonly #primary: Link

  constructor(primary: Link) {
    this.#primary = primary
  }

  add({ user, client }: UserConnection, limit: number): Promise<readonly [] | null> {
    return this.#primary.ask(
      'addUserConnection',
      (out) => out.text(user).text(client).number(limit),
      (fields) => (fields.byte() === 1 ? null : [])
    )
  }

  remove({ user, client }: UserConnection): void {
    this.#primary.tell('removeUserConnection', (out) => out.text(user).text(client))
  }
}

/** The primary's side, until the link closes: the connections of a worker end with it. */
export const serveUserConnections = (link: Link, connections: UserConnections): void => {
  const counted = new Map<string, UserConnection>()
  link.answers({
    addUserConnection: async (fields) => {
      const connection = { user: fields.text(), client: fields.text(), node: '' }
      const isCounted = (await connections.add(connection, fields.number())) === null
      if (isCounted) counted.set(connection.client, connection)
      return (out) => out.byte(isCounted ? 1 : 0)
    }
  })
  link.hears({
    removeUserConnection: (fields) => {
      const connection = { user: fields.text(), client: fields.text(), node: '' }
      counted.delete(connection.client)
      void connections.remove(connection)
    }
  })
  void link.closed.then(() => {
    for (const connection of counted.values()) void connections.remove(connection)
  })
}
