import { Socket } from 'node:net'
import { parentPort } from 'node:worker_threads'
import { Client } from 'pg'

/**
 * The worker thread of `database-health.ts`. pg throws inside a 'data' listener for messages that it does not support,
 * such as a request for Kerberos authentication, and has no option for it. Here such an error ends the thread only.
 */

/** The error of a check, without its stack. */
export interface CheckError {
  readonly code: string
  readonly syscall: string
  readonly message: string
}

/** Connects, sends `SELECT 1` and disconnects. */
const check = async (url: string): Promise<void> => {
  // Our own socket, so that a server which does not close the connection cannot keep it open.
  const socket = new Socket()
  try {
    const client = new Client({
      connectionString: url,
      fallback_application_name: 'gatehouse',
      stream: () => socket
    })
    // An error between two calls would be uncaught otherwise.
    client.on('error', (error) => socket.destroy(error))
    await client.connect()
    await client.query('SELECT 1')
    await client.end()
  } finally {
    socket.destroy()
  }
}

const toCheckError = (error: unknown): CheckError => {
  // Errors of the socket or of pg; `code` and `syscall` are optional.
  const { code = '', syscall = '', message } = error as NodeJS.ErrnoException
  return { code, syscall, message }
}

parentPort?.on('message', (url: string) => {
  check(url).then(
    () => parentPort?.postMessage(null),
    (error) => parentPort?.postMessage(toCheckError(error))
  )
})

parentPort?.postMessage('ready')
