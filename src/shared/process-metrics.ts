import { collectDefaultMetrics, type Registry } from 'prom-client'

/**
 * Sampling interval of the event loop lag. The default of 10 ms causes most of the work of an idle process. The reported
 * lag includes the interval.
 */
const LAG_PRECISION_MS = 50

/** Memory, CPU time and event loop of this process, with the default names of prom-client. */
export const collectProcessMetrics = (register: Registry): void =>
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: LAG_PRECISION_MS })
