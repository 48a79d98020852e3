import { Socket } from 'node:net'
import { MemoryUserConnections } from '../../src/relay/engine/memory.js'
import { MemoryUserRates } from '../../src/relay/engine/memory-user-rates.js'
import { IpcConnection } from '../../src/relay/workers/ipc.js'
import { PrimaryEngine } from '../../src/relay/workers/primary-engine.js'
import { PrimaryChannelStates } from '../../src/relay/workers/worker-channel-states.js'
import { PrimarySurvey } from '../../src/relay/workers/worker-cluster.js'
import { serveUserConnections } from '../../src/relay/workers/worker-user-connections.js'
import { serveUserRates } from '../../src/relay/workers/worker-user-rates.js'
import { STATE_RULES } from './channel-state-rules.js'
import { IPC_FDS, type PrimaryCommand } from './primary-process.js'

// The primary's engine, survey, user connections and user rates, with a clock that the test advances.

let nowMs = 1_700_000_000_000
let epochs = 0
const ipcConnections = IPC_FDS.map(
  (fd) =>
    new IpcConnection(new Socket({ fd, readable: true, writable: true }), (error) => process.send?.(String(error)))
)

process.on('message', (command: PrimaryCommand) => {
  if (command.kind === 'advanceClock') nowMs += command.ms
  else {
    const primary = new PrimaryEngine({
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      newEpoch: () => `epoch${++epochs}`
    })
    primary.channelStates.configure(STATE_RULES)
    const channelStates = new PrimaryChannelStates(primary.channelStates)
    const survey = new PrimarySurvey(command.surveyTimeoutMs)
    const userConnections = new MemoryUserConnections()
    const userRates = new MemoryUserRates(() => nowMs)
    for (const ipc of ipcConnections) {
      primary.serve(ipc)
      channelStates.serve(ipc)
      survey.serve(ipc)
      serveUserConnections(ipc, userConnections)
      serveUserRates(ipc, userRates)
    }
  }
  process.send?.('done')
})
process.send?.('ready')
