import type { Engine } from './engine.js'
import { FleetOfOne } from './fleet-of-one.js'
import { MemoryEngine, type MemoryParts } from './memory.js'
import { MemoryPresence } from './memory-presence.js'
import { MemoryUserConnections } from './memory-user-connections.js'

/** The engine of a relay that is one process and acts alone. */
export const withinProcess = (parts: MemoryParts): Engine => {
  const memory = new MemoryEngine(parts)
  return {
    broker: memory,
    history: memory,
    presence: new MemoryPresence(),
    fleet: new FleetOfOne(),
    userConnections: new MemoryUserConnections(),
    isReady: true,
    sweep: () => memory.sweep(),
    close: () => memory.close()
  }
}
