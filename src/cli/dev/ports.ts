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

const listenError = async (port: number): Promise<string | null> => {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  }
  server.close()
  await once(server, 'close')
  return null
}
