import { Socket } from 'node:net'
import { MemoryUserConnections } from '../../src/relay/engine/memory-user-connections.js'
import { ChannelOwner } from '../../src/relay/workers/channel-owner.js'
import { FleetDesk } from '../../src/relay/workers/fleet-desk.js'
import { Link } from '../../src/relay/workers/link.js'
import { serveUserConnections } from '../../src/relay/workers/user-connections.js'
import { OWNER_FD, type OwnerOrder } from './owner-process.js'

// The owner of a relay's channels without the rest of the relay, and with a clock that can be moved.

let nowMs = 1_700_000_000_000
let epochs = 0
const links = OWNER_FD.map(
  (fd) => new Link(new Socket({ fd, readable: true, writable: true }), (error) => process.send?.(String(error)))
)

process.on('message', (order: OwnerOrder) => {
  if (order.kind === 'pass') nowMs += order.ms
  else {
    const owner = new ChannelOwner({ nowMs: () => nowMs, monotonicMs: () => nowMs, newEpoch: () => `epoch${++epochs}` })
    const desk = new FleetDesk(order.patienceMs)
    const userConnections = new MemoryUserConnections()
    for (const link of links) {
      owner.serve(link)
      desk.serve(link)
      serveUserConnections(link, userConnections)
    }
  }
  process.send?.('done')
})
process.send?.('ready')
