/**
 * The costs of the relay, measured by `npm run bench -- relay` for position batches of 2.5 KB: one core of a shared x86-64
 * machine, Node 20, all features on. The figures of docs/reference/benchmarks.md, rounded up. Replace them with measurements of
 * your own machines.
 */
export const MEASURED: Costs = {
  deliveryMicros: 9,
  publishMicros: 50,
  receiveMicros: 20,
  redisPublishMicros: 34,
  redisPushMicros: 5,
  connectMicros: 240,
  connectionKib: 7,
  kernelKib: 8,
  idleMib: 90
}

export interface Costs {
  /** One publication to one subscriber with a separate write. Busy channels combine writes and cost less. */
  readonly deliveryMicros: number
  /** One publish call, at the relay that receives it. */
  readonly publishMicros: number
  /** One publication from Redis, at each relay that has subscribers. */
  readonly receiveMicros: number
  /** At Redis: the script call of a publish. */
  readonly redisPublishMicros: number
  /** At Redis: the publication to one relay. */
  readonly redisPushMicros: number
  /** Connect, token and subscription of one client. */
  readonly connectMicros: number
  readonly connectionKib: number
  /** Buffers of the kernel for one idle TCP connection. */
  readonly kernelKib: number
  /** One relay process without clients. */
  readonly idleMib: number
}
