import { once } from 'node:events'
import { mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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

/** Has a file for each port that a test has chosen, because it may be some time until its program listens. */
const CHOSEN = join(tmpdir(), 'gatehouse-test-ports')
/** Longer than a run of all tests. */
const CHOSEN_FOR_MS = 3_600_000

/** Returns false if a test of this or another process has chosen the port. */
const choose = (port: number): boolean => {
  mkdirSync(CHOSEN, { recursive: true })
  const file = join(CHOSEN, String(port))
  try {
    writeFileSync(file, '', { flag: 'wx' })
    return true
  } catch {
    if (Date.now() - statSync(file).mtimeMs < CHOSEN_FOR_MS) return false
    utimesSync(file, new Date(), new Date())
    return true
  }
}

/** A port below the ephemeral range, so that the system assigns it to no other program during a restart. */
export const freePort = async (): Promise<number> => {
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  if (!choose(port)) return freePort()
  const server = createServer()
  try {
    await once(server.listen(port, LOOPBACK), 'listening')
  } catch {
    return freePort()
  }
  await once(server.close(), 'close')
  return port
}
