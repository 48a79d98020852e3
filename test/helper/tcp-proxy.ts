import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { portOf } from './address.js'
import type { Teardown } from './child.js'
import { LOOPBACK } from './free-port.js'

export interface TcpProxy {
  readonly port: number
  /** Sends new connections to another port and closes the existing ones. */
  redirect(port: number): void
  /** Stops forwarding to clients that have sent this text; their connections stay open. */
  stopForwarding(text: string): void
  /** Delays everything that the server sends. */
  delay(ms: number): void
  /** Closes existing and new connections of clients that send this text, until the returned function is called. */
  block(text: string): () => void
}

/** A TCP proxy that simulates a moved server, a slow or silent network and broken connections. */
export const startTcpProxy = async (t: Teardown, port: number): Promise<TcpProxy> => {
  let target = port
  let delayMs = 0
  const blocked = new Set<string>()
  const isBlocked = (text: string): boolean => [...blocked].some((each) => text.includes(each))
  const open = new Map<Socket, { readonly server: Socket; sent: string }>()
  const proxy = createServer((client) => {
    const server = connect(target, LOOPBACK)
    const connection = { server, sent: '' }
    open.set(client, connection)
    client.on('data', (data) => {
      connection.sent += data.toString('latin1')
      if (isBlocked(connection.sent)) client.destroy()
      else server.write(data)
    })
    server.on('data', (data) => {
      if (delayMs === 0) client.write(data)
      else setTimeout(() => client.write(data), delayMs)
    })
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
    port: portOf(proxy),
    redirect: (next) => {
      target = next
      endAll()
    },
    delay: (ms) => {
      delayMs = ms
    },
    block: (text) => {
      blocked.add(text)
      for (const [client, connection] of open) if (isBlocked(connection.sent)) client.destroy()
      return () => void blocked.delete(text)
    },
    stopForwarding: (text) => {
      for (const connection of open.values()) {
        if (connection.sent.includes(text)) connection.server.removeAllListeners('data').resume()
      }
    }
  }
}
