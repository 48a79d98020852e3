import type { UserConnection, UserConnections } from '../core/user-connections.js'
import type { IpcChannel } from './ipc.js'

/** A worker's side: the primary counts the connections of all workers. */
export class WorkerUserConnections implements UserConnections {
  readonly #primary: IpcChannel

  constructor(primary: IpcChannel) {
    this.#primary = primary
  }

  add({ user, client }: UserConnection, limit: number): Promise<readonly [] | null> {
    return this.#primary.request(
      'addUserConnection',
      (out) => out.text(user).text(client).number(limit),
      (fields) => (fields.byte() === 1 ? null : [])
    )
  }

  remove({ user, client }: UserConnection): void {
    this.#primary.send('removeUserConnection', (out) => out.text(user).text(client))
  }
}

/** The primary's side, until the link closes: the connections of a worker end with it. */
export const serveUserConnections = (ipc: IpcChannel, connections: UserConnections): void => {
  const counted = new Map<string, UserConnection>()
  ipc.onRequest({
    addUserConnection: async (fields) => {
      const client = { user: fields.text(), client: fields.text(), node: '' }
      const isCounted = (await connections.add(client, fields.number())) === null
      if (isCounted) counted.set(client.client, client)
      return (out) => out.byte(isCounted ? 1 : 0)
    }
  })
  ipc.onMessage({
    removeUserConnection: (fields) => {
      const client = { user: fields.text(), client: fields.text(), node: '' }
      counted.delete(client.client)
      void connections.remove(client)
    }
  })
  void ipc.closed.then(() => {
    for (const client of counted.values()) void connections.remove(client)
  })
}
