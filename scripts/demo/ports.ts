import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Program } from './stack.js'

/** One line for each port that somebody else listens on: which, and what to set. */
export const takenPorts = async (
  programs: readonly Pick<Program, 'name' | 'port' | 'portVariable'>[]
): Promise<string[]> => {
  const lines: string[] = []
  for (const { name, port, portVariable } of programs) {
    const fault = await listenFault(port)
    if (fault !== null) {
      const what = fault === 'EADDRINUSE' ? 'is taken' : `cannot be used (${fault})`
      lines.push(
        `Port ${port} of the ${name} ${what}. Stop what listens there, or set ${portVariable} to another port.`
      )
    }
  }
  return lines
}

const listenFault = async (port: number): Promise<string | null> => {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
  server.close()
  await once(server, 'close')
  return null
}
