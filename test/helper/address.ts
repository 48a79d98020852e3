import type { AddressInfo } from 'node:net'
import { LOOPBACK } from './free-port.js'

/** A server of node:net, node:http or node:https. */
interface AddressedServer {
  address(): AddressInfo | string | null
}

/** The port of a server that listens on TCP. */
export const portOf = (server: AddressedServer): number => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error(`not listening on TCP: ${address}`)
  return address.port
}

/** The base URL of an HTTP server that listens on the loopback interface. */
export const urlOf = (server: AddressedServer): string => `http://${LOOPBACK}:${portOf(server)}`
