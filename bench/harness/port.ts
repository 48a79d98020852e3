import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** A free port of the loopback address, for programs that cannot choose one themselves. */
export const freePort = async (): Promise<number> => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // The server listens on a TCP port, so its address is not a path.
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}

const ATTEMPTS = 200
const INTERVAL_MS = 50

/** Resolves when the port accepts connections. */
export const accepting = async (port: number): Promise<void> => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const socket = connect({ port, host: '127.0.0.1' })
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false
    )
    socket.destroy()
    if (isOpen) return
    await setTimeout(INTERVAL_MS)
  }
  throw new Error(`no program listens on port ${port}`)
}
