import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import { INTERNAL_LISTEN_SETTINGS, LISTEN_SETTINGS, type ListenAddress } from '../config/config.js'
import { listen } from '../transport/server.js'
import type { FrameReader, FrameWriter } from './frames.js'

// Where the system and Node.js have SO_REUSEPORT, each worker listens on the port itself, and the kernel distributes the new
// connections. Passing each connection from the primary to a worker costs about as much CPU time as connecting (decision 17).

/** The addresses that the relay listens on. */
export interface Addresses {
  readonly external: ListenAddress
  readonly internal: ListenAddress | null
}

/** How a worker gets its connections. */
export interface WorkerConnections {
  /** The servers receive connections from now on. */
  serve(server: HttpServer, internalServer: HttpServer | null): Promise<void>
  /** Receives no further connections. */
  drain(): void
  /** Resolves when all received connections are closed. Null if the servers accept their connections themselves. */
  closed(): Promise<void> | null
}

/** The option `reusePort` of `listen` exists from Node.js 22.12 on, the oldest supported release of that major version. */
const FIRST_MAJOR_WITH_REUSE_PORT = 22

export const canSharePort = (): boolean =>
  process.platform === 'linux' && Number(process.versions.node.split('.')[0]) >= FIRST_MAJOR_WITH_REUSE_PORT

/**
 * The addresses with their port numbers. Listens on them for a moment without sharing them, because workers would share the
 * port also with another relay of the same user. Throws `SettingsError` if they are not free.
 */
export const reserveAddresses = async (external: ListenAddress, internal: ListenAddress | null): Promise<Addresses> => {
  const servers: Server[] = []
  const reserve = async (address: ListenAddress, settings: typeof LISTEN_SETTINGS): Promise<ListenAddress> => {
    const server = createServer()
    servers.push(server)
    const { address: host, port } = await listen(server, address, settings)
    return { host, port }
  }
  try {
    return {
      external: await reserve(external, LISTEN_SETTINGS),
      internal: internal === null ? null : await reserve(internal, INTERNAL_LISTEN_SETTINGS)
    }
  } finally {
    await Promise.all(servers.filter((server) => server.listening).map((server) => once(server.close(), 'close')))
  }
}

/** Null: the primary passes the connections on. */
export const writeAddresses = (out: FrameWriter, addresses: Addresses | null): void => {
  for (const address of [addresses?.external ?? null, addresses?.internal ?? null])
    out.textOrNull(address?.host ?? null).number(address?.port ?? 0)
}

export const readAddresses = (fields: FrameReader): Addresses | null => {
  const [external, internal] = [readAddress(fields), readAddress(fields)]
  return external === null ? null : { external, internal }
}

const readAddress = (fields: FrameReader): ListenAddress | null => {
  const [host, port] = [fields.textOrNull(), fields.number()]
  return host === null ? null : { host, port }
}

/** A worker that listens on the addresses together with the other workers. */
export class SharedPort implements WorkerConnections {
  readonly #addresses: Addresses

  constructor(addresses: Addresses) {
    this.#addresses = addresses
  }

  async serve(server: HttpServer, internalServer: HttpServer | null): Promise<void> {
    const { external, internal } = this.#addresses
    if (internalServer !== null && internal !== null)
      await listen(internalServer, internal, INTERNAL_LISTEN_SETTINGS, REUSE_PORT)
    await listen(server, external, LISTEN_SETTINGS, REUSE_PORT)
  }

  /** Closing the servers ends it. */
  drain(): void {}

  closed(): null {
    return null
  }
}

/** Not yet in @types/node of the oldest supported version. */
const REUSE_PORT: object = { reusePort: true }
