import t, { type Test } from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient, type RawClient } from '../../helper/raw-client.js'
import { startRedis } from '../../helper/redis.js'
import { API_KEY } from '../../helper/relay-rules.js'
import { type RelayOfWorkers, startImpatientWorkers, startWorkers } from '../../helper/relay-workers.js'

const FILE = { channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] } }
const PATIENCE_MS = 60_000

/** The answer of a call; the worker that is hung may have taken its connection, so several are made at once. */
const call = async ({ url }: RelayOfWorkers, method: string, request: object): Promise<Record<string, unknown>> => {
  const message = { method: 'POST', body: JSON.stringify(request), headers: { 'x-api-key': API_KEY } }
  const calls = [1, 2, 3].map(() => send(url, `/api/${method}`, message))
  return JSON.parse((await Promise.any(calls)).body)
}

/** Two clients at each of two workers: connections are handed out in turn. */
const twoAtEach = async (t: Test, { url }: RelayOfWorkers, user: string): Promise<readonly RawClient[]> => {
  const clients: RawClient[] = []
  for (let n = 0; n < 4; n++) clients.push(await connectedClient(t, url, user))
  return clients
}

/** Until the test is over at the latest: a stopped process does not end with the relay. */
const freeze = (t: Test, pid: number): void => {
  process.kill(pid, 'SIGSTOP')
  t.teardown(() => {
    try {
      process.kill(pid, 'SIGCONT')
    } catch {
      // It was replaced.
    }
  })
}

for (const engine of ['memory', 'redis']) {
  t.test(`a hung worker leaves a command unconfirmed and applies it when it goes on (${engine})`, async (t) => {
    const env = engine === 'redis' ? { RELAY_ENGINE: 'redis', REDIS_URL: (await startRedis(t)).url } : {}
    const relay = await startWorkers(t, 2, FILE, env)
    const banned = await twoAtEach(t, relay, 'banned')
    const [hung] = relay.workers() as [number]
    freeze(t, hung)
    t.match(await call(relay, 'disconnect', { user: 'banned' }), { error: { code: 100 } })
    process.kill(hung, 'SIGCONT')

    for (const { closed } of banned) t.equal(await closed, '3503 force disconnect')
  })
}

t.test('a reload names the worker that it did not reach, and reaches it when it goes on', async (t) => {
  const relay = await startImpatientWorkers(t, 2, FILE)
  const [hung] = relay.workers() as [number]
  freeze(t, hung)
  relay.configure({ channel: { namespaces: [{ name: 'new' }] } })
  relay.program.signal('SIGHUP')
  const line = await relay.program.waitForLine('config not applied in all workers', PATIENCE_MS)
  t.match(JSON.parse(line), { workers: [1], needsRestart: [] })
  t.notMatch(relay.program.stdout, 'config reloaded')
  process.kill(hung, 'SIGCONT')
  t.match(JSON.parse(await relay.program.waitForLine('config applied late', PATIENCE_MS)), { worker: 1 })

  const results = await Promise.all([1, 2, 3, 4].map(() => relay.publish('new:1', 1)))
  t.same(results, [{}, {}, {}, {}])
})

t.test('a worker that is hung is replaced, and the new one has the config that the old one missed', async (t) => {
  const relay = await startImpatientWorkers(t, 2, FILE)
  const clients = await twoAtEach(t, relay, '42')
  const [hung] = relay.workers() as [number]
  freeze(t, hung)
  relay.configure({ channel: { namespaces: [{ name: 'new' }] } })
  relay.program.signal('SIGHUP')
  t.match(JSON.parse(await relay.program.waitForLine('hung worker killed', PATIENCE_MS)), { worker: 1, pid: hung })
  t.equal(await Promise.race(clients.map(({ closed }) => closed)), '1006')
  await relay.program.waitForLine('a worker has been replaced', PATIENCE_MS)
  await eventually(async () => (await relay.nodes()).length === 2)
  t.notOk(relay.workers().includes(hung))

  const results = await Promise.all([1, 2, 3, 4].map(() => relay.publish('new:1', 1)))
  t.same(results, [{}, {}, {}, {}])
})
