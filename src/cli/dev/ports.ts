import { once } from 'node:events'
import { createServer } from 'node:net'

/** A program and the port that it will listen on. */
export interface ProgramPort {
  readonly name: string
  readonly port: number
  /** The setting that changes the port. */
  readonly portVariable: string
}

/** One message for each port that cannot be used, with the variable to set. */
export const unavailablePorts = async (programs: readonly ProgramPort[]): Promise<string[]> => {
  const lines: string[] = []
  for (const { name, port, portVariable } of programs) {
    const errorCode = await listenError(port)
    if (errorCode !== null) {
      const problem = errorCode === 'EADDRINUSE' ? 'is in use' : `cannot be used (${errorCode})`
      lines.push(
        `Port ${port} of the ${name} ${problem}. Stop the program that listens there, or set ${portVariable} to another port.`
      )
    }
  }
  return lines
}

const MAX_PORT = 65_535

/** The first port from `first` on that is free and not in `taken`. Without any, the first one, which `unavailablePorts` reports. */
export const freePortFrom = async (first: number, taken: ReadonlySet<number>): Promise<number> => {
  for (let port = first; port <= MAX_PORT; port += 1)
    if (!taken.has(port) && (await listenError(port)) === null) return port
  return first
}

/** `localhost` is both addresses, and development servers may listen on either. */
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1']

const listenError = async (port: number): Promise<string | null> => {
  for (const address of LOOPBACK_ADDRESSES) {
    const errorCode = await listenErrorAt(address, port)
    // The machine has no IPv6.
    if (errorCode !== null && errorCode !== 'EADDRNOTAVAIL' && errorCode !== 'EAFNOSUPPORT') return errorCode
  }
  return null
}

const listenErrorAt = async (address: string, port: number): Promise<string | null> => {
  const server = createServer()
  try {
    server.listen(port, address)
    await once(server, 'listening')
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
  server.close()
  await once(server, 'close')
  return null
}
