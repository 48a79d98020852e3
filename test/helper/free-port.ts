import { once } from 'node:events'
import { createServer } from 'node:net'

export const LOOPBACK = '127.0.0.1'
const START_ATTEMPTS = 5

/** Starts a program that cannot listen on port 0, again if its error says that the port is in use. */
export const onFreePort = async <Started>(
  start: (port: number) => Promise<Started>
): Promise<{ port: number; started: Started }> => {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    try {
      return { port, started: await start(port) }
    } catch (error) {
      // Another test file may have taken the port in the meantime.
      if (attempt === START_ATTEMPTS || !/in use/.test(String(error))) throw error
    }
  }
}

/** A port below the ephemeral range, so that the system assigns it to no other program during a restart. */
export const freePort = async (): Promise<number> => {
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  const server = createServer()
  try {
    await once(server.listen(port, LOOPBACK), 'listening')
  } catch {
    return freePort()
  }
  await once(server.close(), 'close')
  return port
}
