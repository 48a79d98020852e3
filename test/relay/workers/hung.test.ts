import t from 'tap'
import { eventually } from '../../helper/eventually.js'
import { connectedClient } from '../../helper/raw-client.js'
import { freeze, startImpatientWorkers } from '../../helper/relay-workers.js'

const fileOf = (namespace: string) => ({ channel: { namespaces: [{ name: namespace }] } })
const PATIENCE_MS = 90_000

const relay = await startImpatientWorkers(t, 2, fileOf('old'))
const [hung] = relay.workers() as [number]
/** Each call has a connection of its own, and connections are handed out in turn. */
const publishAtAll = (channel: string) => Promise.all([1, 2, 3, 4].map(() => relay.publish(channel, 1)))

t.test('a reload names the worker that it did not reach, and reaches it when it goes on', async (t) => {
  const goOn = freeze(t, hung)
  relay.configure(fileOf('new'))
  relay.program.signal('SIGHUP')
  const line = await relay.program.waitForLine('config not applied in all workers', PATIENCE_MS)
  t.match(JSON.parse(line), { workers: [1], needsRestart: [] })
  t.notMatch(relay.program.stdout, 'config reloaded')
  goOn()
  t.match(JSON.parse(await relay.program.waitForLine('config applied late', PATIENCE_MS)), { worker: 1 })

  t.same(await publishAtAll('new:1'), [{}, {}, {}, {}])
})

t.test('a worker that is hung is replaced, and the new one has the config that the old one missed', async (t) => {
  // Connections are handed out in turn, so there is one at each worker.
  const clients = [await connectedClient(t, relay.url), await connectedClient(t, relay.url)]
  freeze(t, hung)
  relay.configure(fileOf('newest'))
  relay.program.signal('SIGHUP')
  t.match(JSON.parse(await relay.program.waitForLine('hung worker killed', PATIENCE_MS)), { worker: 1, pid: hung })
  t.equal(await Promise.race(clients.map(({ closed }) => closed)), '1006')
  await relay.program.waitForLine('a worker has been replaced', PATIENCE_MS)
  await eventually(async () => (await relay.nodes()).length === 2)
  t.notOk(relay.workers().includes(hung))

  t.same(await publishAtAll('newest:1'), [{}, {}, {}, {}])
})
