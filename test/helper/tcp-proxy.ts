import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Teardown } from './child.js'
import { LOOPBACK } from './free-port.js'

export interface TcpProxy {
  readonly port: number
  /** Sends new connections to another port and closes the existing ones. */
  lead(port: number): void
  /** Stops forwarding to clients that have sent this text; their connections stay open. */
  deafen(said: string): void
  /** Closes existing and new connections of clients that send this text, until the returned function is called. */
  cut(said: string): () => void
}

/** A TCP proxy that simulates a moved server, a silent network and broken connections. */
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
