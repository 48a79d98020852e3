import { messageOf } from './error-message.js'

/**
 * `node health-check.js http://127.0.0.1:3000/api/health` exits with 0 if the response is successful. For containers, whose
 * images contain no other HTTP client.
 */
const TIMEOUT_MS = 2500

const [address = ''] = process.argv.slice(2)
try {
  const { status, ok } = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!ok) throw new Error(`status ${status}`)
} catch (error) {
  process.stderr.write(`not healthy: ${messageOf(error)}\n`)
  process.exitCode = 1
}
