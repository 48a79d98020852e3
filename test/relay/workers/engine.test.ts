import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { WorkerChannelStates } from '../../../src/relay/workers/worker-channel-states.js'
import { WorkerEngine, WorkerPresence } from '../../../src/relay/workers/worker-engine.js'
import { WorkerMaps } from '../../../src/relay/workers/worker-maps.js'
import { WorkerUserConnections } from '../../../src/relay/workers/worker-user-connections.js'
import { WorkerUserRates } from '../../../src/relay/workers/worker-user-rates.js'
import { startPrimary } from '../../helper/primary-process.js'
import { channelStateContract } from '../engine/channel-state-contract.js'
import { engineContract, WITH_HISTORY } from '../engine/contract.js'
import { mapContract } from '../engine/map-contract.js'
import { engineModel } from '../engine/model.js'

const primary = await startPrimary(t)
const [ipc] = primary.ipcConnections

const workerEngine = async () => {
  await primary.command({ kind: 'reset', surveyTimeoutMs: 60_000 })
  const engine = new WorkerEngine(ipc)
  const presence = new WorkerPresence(ipc)
  return {
    broker: engine,
    history: engine,
    maps: new WorkerMaps(ipc),
    presence,
    userConnections: new WorkerUserConnections(ipc),
    userRates: new WorkerUserRates(ipc),
    advance: async (ms: number) => {
      // The reply comes after everything that was sent before.
      await presence.count('')
      await primary.command({ kind: 'advanceClock', ms })
    }
  }
}

engineContract('the engine of a worker', workerEngine)
mapContract('the engine of a worker', workerEngine)
channelStateContract('the engine of a worker', async () => {
  const engine = await workerEngine()
  return { ...engine, elapse: engine.advance, channelStates: new WorkerChannelStates(ipc) }
})
engineModel('the engine of a worker', workerEngine, { runs: 50 })

t.test('a broadcast of 0.5 MB to 400 channels is sent once from the worker to the primary', async (t) => {
  const { broker } = await workerEngine()
  const [stream] = primary.streams
  const before = stream.bytesWritten
  const targets = Array.from({ length: 400 }, (_, index) => ({ channel: `ns:${index}`, options: WITH_HISTORY }))
  const results = await broker.publishToMany(targets, {
    ...PLAIN_PUBLICATION,
    data: JSON.stringify('x'.repeat(500_000))
  })

  t.equal(results.length, 400)
  t.ok(stream.bytesWritten - before < 600_000)
})
