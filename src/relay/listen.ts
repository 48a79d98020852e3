import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { listenFault } from '../shared/listen-fault.js'
import type { RelayConfig } from './config.js'

/** Resolves when the server listens. Throws `SettingsFault` where a setting is the reason that it cannot. */
export const listen = async (server: Server, { host, port }: RelayConfig['listen']): Promise<AddressInfo> => {
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return server.address() as AddressInfo
  } catch (error) {
    throw listenFault(error, { host: 'RELAY_HOST', port: 'RELAY_PORT' })
  }
}
