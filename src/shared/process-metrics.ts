import { collectDefaultMetrics, type Registry } from 'prom-client'

/**
 * How often the event loop is asked whether it is late. The library asks every 10 ms, which is most of what an idle process
 * does; the lag that it tells includes this time.
 */
const LAG_PRECISION_MS = 50

/** Memory, CPU time and event loop of this process, under the names that Node.js programs commonly have for them. */
export const collectProcessMetrics = (register: Registry): void =>
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: LAG_PRECISION_MS })
