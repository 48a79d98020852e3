/** The work of one relay process in steady state. */
export interface RelayLoad {
  /** Connections that receive pings. */
  readonly connections: number
  /** Publish calls. */
  readonly publishesPerSecond: number
  /** Publications from Redis or from the primary of workers. */
  readonly receivedPerSecond: number
  readonly deliveriesPerSecond: number
  /** Time between two deliveries to the same connection. */
  readonly deliveryPauseMs: number
  readonly payloadBytes: number
}

/** CPU time of a relay process. `npm run bench -- capacity` measures it. */
export interface CpuCosts {
  /** One publish call that follows another one at once. */
  readonly publishMicros: number
  /** Additional time of a publication after a long pause: the process was asleep, and the caches hold other data. */
  readonly wakeMicros: number
  /** After a pause of this length, half of `wakeMicros` is spent. */
  readonly pauseMs: number
  /** One publication to one subscriber with a write of its own, without its bytes. */
  readonly deliveryMicros: number
  /** Additional time of a delivery after a long pause of its connection, whose memory is no longer in the caches. */
  readonly coldMicros: number
  /** One byte of a publication to one subscriber. */
  readonly byteNanos: number
  /** One connection for a second: a ping and a pong every 25 s. */
  readonly connectionMicros: number
}

/** After a pause of this length, half of `coldMicros` is spent. */
const COLD_PAUSE_MS = 300

/** Busy cores of one process. */
export const relayCores = (load: RelayLoad, costs: CpuCosts): number => {
  const terms = cpuTerms(load, costs.pauseMs)
  return COST_NAMES.reduce((sum, name) => sum + terms[name] * costs[name], 0)
}

export const COST_NAMES = [
  'publishMicros',
  'wakeMicros',
  'deliveryMicros',
  'coldMicros',
  'byteNanos',
  'connectionMicros'
] as const
export type CostName = (typeof COST_NAMES)[number]

/** How much each cost adds to the busy cores. */
export const cpuTerms = (load: RelayLoad, pauseMs: number): Readonly<Record<CostName, number>> => {
  const { connections, publishesPerSecond, receivedPerSecond, deliveriesPerSecond, deliveryPauseMs, payloadBytes } =
    load
  const publications = publishesPerSecond + receivedPerSecond
  // With T ms between two publications, each has T / (T + pauseMs) of a wake-up, and T is 1000 / publications.
  const wakes = publications / (1 + (publications * pauseMs) / 1000)
  return {
    publishMicros: publishesPerSecond / 1e6,
    wakeMicros: wakes / 1e6,
    deliveryMicros: deliveriesPerSecond / 1e6,
    coldMicros: deliveriesPerSecond / (1 + COLD_PAUSE_MS / deliveryPauseMs) / 1e6,
    byteNanos: (deliveriesPerSecond * payloadBytes) / 1e9,
    connectionMicros: connections / 1e6
  }
}
