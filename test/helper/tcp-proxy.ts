import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Teardown } from './child.js'
import { LOOPBACK } from './free-port.js'

export interface TcpProxy {
  readonly port: number
  /** New connections go there from now on; those there are end. */
  lead(port: number): void
  /** Connections whose client has said this stay open, and their client hears nothing more. */
  deafen(said: string): void
  /** Connections whose client says this are closed, those there are and new ones, until the returned function is called. */
  cut(said: string): () => void
}

/** Between a client and a server: an address that moves, or a network that swallows. */
export const startTcpProxy = async (t: Teardown, port: number): Promise<TcpProxy> => {
  let target = port
  const cuts = new Set<string>()
  const isCut = (said: string): boolean => [...cuts].some((each) => said.includes(each))
  const open = new Map<Socket, { readonly server: Socket; said: string }>()
  const proxy = createServer((client) => {
    const server = connect(target, LOOPBACK)
    const connection = { server, said: '' }
    open.set(client, connection)
    client.on('data', (data) => {
      connection.said += data.toString('latin1')
      if (isCut(connection.said)) client.destroy()
      else server.write(data)
    })
    server.on('data', (data) => client.write(data))
    for (const [one, other] of [
      [client, server],
      [server, client]
    ] as const) {
      one.on('error', () => undefined)
      one.on('close', () => {
        open.delete(client)
        other.destroy()
      })
    }
  })
  await once(proxy.listen(0, LOOPBACK), 'listening')
  const endAll = (): void => {
    for (const client of open.keys()) client.destroy()
  }
  t.teardown(() => {
    endAll()
    proxy.close()
  })
  return {
    port: (proxy.address() as AddressInfo).port,
    lead: (next) => {
      target = next
      endAll()
    },
    cut: (said) => {
      cuts.add(said)
      for (const [client, connection] of open) if (isCut(connection.said)) client.destroy()
      return () => void cuts.delete(said)
    },
    deafen: (said) => {
      for (const connection of open.values()) {
        if (connection.said.includes(said)) connection.server.removeAllListeners('data').resume()
      }
    }
  }
}
