import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { send } from '../../helper/http.js'
import { connectedClient } from '../../helper/raw-client.js'
import { freeze, startWorkersWithShortTimeouts } from '../../helper/relay-workers.js'

const fileOf = (namespace: string) => ({ channel: { namespaces: [{ name: namespace }] } })
const PATIENCE_MS = 90_000

const relay = await startWorkersWithShortTimeouts(t, 2, fileOf('old'))
const [hung] = relay.workers()
/** Each call has its own connection, and workers take turns. */
const publishAtAll = (channel: string) => Promise.all([1, 2, 3, 4].map(() => relay.publish(channel, 1)))

t.test('a reload reports the suspended worker, which applies the config when it continues', async (t) => {
  const resume = freeze(t, hung)
  relay.configure(fileOf('new'))
  relay.program.signal('SIGHUP')
  const line = await relay.program.waitForLine('config not applied in all workers', PATIENCE_MS)
  t.match(JSON.parse(line), { workers: [1], needsRestart: [] })
  t.notMatch(relay.program.stdout, 'config reloaded')
  resume()
  t.match(JSON.parse(await relay.program.waitForLine('config applied late', PATIENCE_MS)), { worker: 1 })

  t.same(await publishAtAll('new:1'), [{}, {}, {}, {}])
})

t.test('a hung worker is killed, and its replacement has the config that it missed', async (t) => {
  // Workers take turns, so each has one of the connections.
  const clients = [await connectedClient(t, relay.url), await connectedClient(t, relay.url)]
  freeze(t, hung)
  // Of three connections, the suspended worker is given one, which it never accepts.
  const requests = [1, 2, 3].map(() => send(relay.url, '/health').then(({ status }) => status, String))
  relay.configure(fileOf('newest'))
  relay.program.signal('SIGHUP')
  t.match(JSON.parse(await relay.program.waitForLine('hung worker killed', PATIENCE_MS)), {
    worker: 1,
    workerPid: hung
  })
  t.equal(await Promise.race(clients.map(({ closed }) => closed)), '1006')
  const outcomes = await Promise.all(requests)
  t.equal(outcomes.filter((outcome) => outcome === 200).length, 2, 'the other workers respond')
  t.equal(outcomes.filter((outcome) => typeof outcome === 'string').length, 1, 'the unaccepted connection is closed')
  await relay.program.waitForLine('worker replaced', PATIENCE_MS)
  await eventually(async () => (await relay.nodes()).length === 2)
  t.notOk(relay.workers().includes(hung))

  t.same(await publishAtAll('newest:1'), [{}, {}, {}, {}])
})
