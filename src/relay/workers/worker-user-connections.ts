import type { UserConnection, UserConnections } from '../core/engine.js'
import type { FrameReader } from './frames.js'
import type { IpcConnection } from './ipc.js'

/** A worker's side: the primary counts the connections of each user at all workers. */
export class WorkerUserConnections implements UserConnections {
  readonly #primary: IpcConnection

  constructor(primary: IpcConnection) {
    this.#primary = primary
  }

  add({ user, client }: UserConnection, limit: number): Promise<readonly [] | null> {
    return this.#primary.request(
      'addUserConnection',
      (out) => out.text(user).text(client).number(limit),
      (fields) => (fields.byte() === 1 ? null : [])
    )
  }

  async remove({ user, client }: UserConnection): Promise<void> {
    this.#primary.send('removeUserConnection', (out) => out.text(user).text(client))
  }
}

/** The primary's side. The connections of a worker are removed when its IPC connection closes. */
export const serveUserConnections = (ipc: IpcConnection, connections: UserConnections): void => {
  const counted = new Map<string, UserConnection>()
  ipc.onRequest({
    addUserConnection: async (fields) => {
      const connection = readConnection(fields)
      const isCounted = (await connections.add(connection, fields.number())) === null
      if (isCounted) counted.set(connection.client, connection)
      return (out) => out.byte(isCounted ? 1 : 0)
    }
  })
  ipc.onMessage({
    removeUserConnection: (fields) => {
      const connection = readConnection(fields)
      counted.delete(connection.client)
      void connections.remove(connection)
    }
  })
  void ipc.closed.then(() => {
    for (const connection of counted.values()) void connections.remove(connection)
  })
}

const readConnection = (fields: FrameReader): UserConnection => ({
  user: fields.text(),
  client: fields.text(),
  // The primary counts by user and client only.
  node: ''
})
