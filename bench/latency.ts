import { gatewayLatency } from './gateway/latency.js'
import type { Suite } from './harness/suite.js'
import { relayLatency } from './relay/latency.js'

/** Latency at a fixed rate of publications and of requests. */
export const latencySuite: Suite = {
  blocks: ['relay latency', 'gateway latency'],
  run: async (options) => {
    const reports = [await relayLatency(options), await gatewayLatency(options)]
    return { blocks: reports.map(({ block }) => block), charts: reports.flatMap(({ charts }) => charts) }
  }
}
