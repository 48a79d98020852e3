import { Socket } from 'node:net'
import { MemoryUserConnections } from '../../src/relay/engine/memory.js'
import { IpcChannel } from '../../src/relay/workers/ipc.js'
import { PrimaryEngine } from '../../src/relay/workers/primary-engine.js'
import { PrimarySurvey } from '../../src/relay/workers/survey.js'
import { serveUserConnections } from '../../src/relay/workers/user-connections.js'
import { OWNER_FD, type OwnerOrder } from './owner-process.js'

// The owner of a relay's channels without the rest of the relay, and with a clock that can be moved.

let nowMs = 1_700_000_000_000
let epochs = 0
const ipcChannels = OWNER_FD.map(
  (fd) => new IpcChannel(new Socket({ fd, readable: true, writable: true }), (error) => process.send?.(String(error)))
)

process.on('message', (order: OwnerOrder) => {
  if (order.kind === 'pass') nowMs += order.ms
  else {
    const primary = new PrimaryEngine({
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      newEpoch: () => `epoch${++epochs}`
    })
    const desk = new PrimarySurvey(order.patienceMs)
    const userConnections = new MemoryUserConnections()
    for (const ipc of ipcChannels) {
      primary.serve(ipc)
      desk.serve(ipc)
      serveUserConnections(ipc, userConnections)
    }
  }
  process.send?.('done')
})
process.send?.('ready')
