import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { API_SECRET } from '../helper/gateway.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { startBackend } from '../helper/recording-backend.js'

const LONGER_THAN_GRACE_MS = 30_000

// In a separate file, because it waits for the whole grace period and can run in parallel.
t.test('pending requests are cut off after the grace period, and the gateway exits with 0', async (t) => {
  const backend = await startBackend(t)
  // The backend receives the request and never responds.
  backend.respond = () => backend.server.emit('reached')
  const program = await startProgram(t, 'dist/src/gateway/main.js', {
    NODE_ENV: 'production',
    GATEWAY_PORT: '0',
    BACKEND_URL: backend.url,
    BACKEND_CONNECTIONS: '1',
    API_SECRET,
    AUDIT_LOG_FILE: join(t.testdir(), 'audit.jsonl')
  })
  const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at')) ?? []
  const reached = once(backend.server, 'reached')
  // One request is at the backend, the other is queued.
  const interrupted = [1, 2].map(() => t.rejects(send(url, '/api/zones'), { code: 'ECONNRESET' }))
  await reached

  program.signal('SIGTERM')

  await program.waitForLine('shutdown deadline exceeded', LONGER_THAN_GRACE_MS)
  await Promise.all(interrupted)
  t.same(await program.exited, { code: 0, signal: null })
  t.equal(program.stdout.match(/"status":499,.*"cutShort":true/g)?.length, 2, 'both requests are logged as cut short')
  t.notMatch(program.stdout, '"level":50', 'no error is logged')
  t.match(program.stdout, '"stopped"', 'all resources are closed')
  t.equal(program.stderr, '')
})
