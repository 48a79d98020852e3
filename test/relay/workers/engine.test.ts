import t from 'tap'
import type { Link } from '../../../src/relay/workers/link.js'
import { OwnedEngine } from '../../../src/relay/workers/owned-engine.js'
import { OwnedPresence } from '../../../src/relay/workers/owned-presence.js'
import { WorkerUserConnections } from '../../../src/relay/workers/user-connections.js'
import { startOwner } from '../../helper/owner-process.js'
import { engineContract } from '../engine/contract.js'
import { engineModel } from '../engine/model.js'

const owner = await startOwner(t)
const [link] = owner.links as [Link, Link]

const workerEngine = async () => {
  await owner.order({ kind: 'fresh', patienceMs: 60_000 })
  const engine = new OwnedEngine(link)
  return {
    broker: engine,
    history: engine,
    presence: new OwnedPresence(link),
    userConnections: new WorkerUserConnections(link),
    pass: (ms: number) => owner.order({ kind: 'pass', ms })
  }
}

engineContract('the engine of a worker', workerEngine)
engineModel('the engine of a worker', workerEngine, { runs: 50 })
