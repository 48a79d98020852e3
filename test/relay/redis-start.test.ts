import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { eventually } from '../helper/eventually.js'
import { freePort } from '../helper/free-port.js'
import { send } from '../helper/http.js'
import { startProgram } from '../helper/program.js'
import { startRedis } from '../helper/redis.js'
import { API_KEY, HMAC_SECRET } from '../helper/relay-rules.js'
import { startWorkers } from '../helper/relay-workers.js'

const START_WITHIN_MS = 60_000

const start = (t: Test, env: Readonly<Record<string, string>>) =>
  startProgram(t, 'dist/src/relay/main.js', {
    RELAY_PORT: '0',
    RELAY_ENGINE: 'redis',
    REALTIME_HMAC_SECRET: HMAC_SECRET,
    REALTIME_API_KEY: API_KEY,
    ...env
  })

const publish = async (url: string) =>
  JSON.parse(
    (
      await send(url, '/api/publish', {
        method: 'POST',
        body: JSON.stringify({ channel: 'floor:1', data: [] }),
        headers: { 'x-api-key': API_KEY }
      })
    ).body
  )

t.test('a relay that cannot authenticate at Redis', async (t) => {
  const { port } = await startRedis(t, { args: ['--requirepass', 'right'] })
  const program = await start(t, { REDIS_URL: `redis://:hunter2@127.0.0.1:${port}` })

  t.same(await program.exited, { code: 1, signal: null })
  t.match(program.stderr, /^relay: cannot start: Redis at 127.0.0.1:\d+: WRONGPASS [^\n]*\n$/)
  t.notMatch(program.stdout + program.stderr, /hunter2|^\s+at /m)
})

t.test('a Redis behind TLS', async (t) => {
  const folder = t.testdir()
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const subject = ['-subj', '/CN=redis', '-addext', 'subjectAltName=IP:127.0.0.1']
  await promisify(execFile)('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', certificate])
  const tlsPort = await freePort()
  const files = ['--tls-cert-file', certificate, '--tls-key-file', key, '--tls-ca-cert-file', certificate]
  await startRedis(t, { args: ['--tls-port', `${tlsPort}`, ...files, '--tls-auth-clients', 'no'] })
  const REDIS_URL = `rediss://127.0.0.1:${tlsPort}/1`

  t.test('a relay that trusts the certificate connects', async (t) => {
    const program = await start(t, { REDIS_URL, NODE_EXTRA_CA_CERTS: certificate })
    const [url = ''] = /http:[^"]+/.exec(await program.waitForLine('listening at', START_WITHIN_MS)) ?? []
    t.match(await publish(url), { result: { offset: 1 } })
    t.equal((await send(url, '/health')).status, 200)
    t.equal(program.stderr, '')
  })

  t.test('a relay that does not trust the certificate exits', async (t) => {
    const program = await start(t, { REDIS_URL })
    t.same(await program.exited, { code: 1, signal: null })
    t.match(program.stderr, /^relay: cannot start: Redis at [^\n]*certificate[^\n]*\n$/)
  })
})

t.test('workers on Redis', async (t) => {
  t.test('each worker is a node of its own', async (t) => {
    const { url } = await startRedis(t)
    const channel = { namespaces: [{ name: 'chat', history_size: 10, history_ttl: '60s' }] }
    const relay = await startWorkers(t, 2, { channel }, { RELAY_ENGINE: 'redis', REDIS_URL: url })
    await eventually(async () => (await relay.nodes()).length === 2)
    const published = await Promise.all(Array.from({ length: 6 }, (_, n) => relay.publish('chat:1', n)))
    t.same(published.map(({ offset }) => offset).sort(), [1, 2, 3, 4, 5, 6], 'one history for both')
  })
})
