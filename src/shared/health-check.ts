/**
 * `node health-check.js http://127.0.0.1:3000/api/health` leaves with 0 when the answer is a good one. For containers,
 * whose images have no other program that could ask.
 */
const WITHIN_MS = 2500

const [address = ''] = process.argv.slice(2)
try {
  const { status, ok } = await fetch(address, { signal: AbortSignal.timeout(WITHIN_MS) })
  if (!ok) throw new Error(`answered ${status}`)
} catch (error) {
  process.stderr.write(`not healthy: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
