import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import { atEachWorker, freeze, startWorkersWithShortTimeouts } from '../../helper/relay-workers.js'

const fileOf = (namespace: string) => ({ channel: { namespaces: [{ name: namespace }] } })
const PATIENCE_MS = 90_000

const relay = await startWorkersWithShortTimeouts(t, 2, fileOf('old'))
const [hung] = relay.workers()
/** More connections than workers. Each worker has some of them: one in turn, or at random with a probability of 0.999998. */
const CONNECTIONS = Array.from({ length: 20 }, (_, index) => index)
const ALL_ACCEPTED = CONNECTIONS.map(() => ({}))
/** Each call has its own connection. */
const publishAtAll = (channel: string) => Promise.all(CONNECTIONS.map(() => relay.publish(channel, 1)))

t.test('a reload reports the suspended worker, which applies the config when it continues', async (t) => {
  const resume = freeze(t, hung)
  relay.configure(fileOf('new'))
  relay.program.signal('SIGHUP')
  const line = await relay.program.waitForLine('config not applied in all workers', PATIENCE_MS)
  t.match(JSON.parse(line), { workers: [1], needsRestart: [] })
  t.notMatch(relay.program.stdout, 'config reloaded')
  resume()
  t.match(JSON.parse(await relay.program.waitForLine('config applied late', PATIENCE_MS)), { worker: 1 })

  t.same(await publishAtAll('new:1'), ALL_ACCEPTED)
})

t.test('a hung worker is killed, and its replacement has the config that it missed', async (t) => {
  const clients = await atEachWorker(relay, () => connectedClient(t, relay.url))
  freeze(t, hung)
  // The suspended worker is given at least one of the connections, which it never accepts.
  const requests = CONNECTIONS.map(() => send(relay.url, '/health').then(({ status }) => status, String))
  relay.configure(fileOf('newest'))
  relay.program.signal('SIGHUP')
  t.match(JSON.parse(await relay.program.waitForLine('hung worker killed', PATIENCE_MS)), {
    worker: 1,
    workerPid: hung
  })
  t.equal(await Promise.race(clients.map(({ closed }) => closed)), '1006')
  const outcomes = await Promise.all(requests)
  t.ok(outcomes.includes(200), 'the other workers respond')
  t.ok(
    outcomes.some((outcome) => typeof outcome === 'string'),
    'an unaccepted connection is closed'
  )
  await relay.program.waitForLine('worker replaced', PATIENCE_MS)
  await eventually(async () => (await relay.nodes()).length === 2)
  t.notOk(relay.workers().includes(hung))

  t.same(await publishAtAll('newest:1'), ALL_ACCEPTED)
})
