/**
 * What the relay costs, as `npm run bench -- relay` measures it for position batches of 2.5 KB: one core of a shared x86-64
 * machine, Node 20, everything on. Measure on your own machines and put the numbers in.
 */
export const MEASURED: Costs = {
  deliveryMicros: 10,
  publishMicros: 66,
  receiveMicros: 30,
  redisPublishMicros: 34,
  redisPushMicros: 5,
  connectMicros: 300,
  connectionKib: 6,
  kernelKib: 8,
  idleMib: 90
}

export interface Costs {
  /** One publication to one subscriber, a write of its own each: what quiet channels cost; busy ones share writes. */
  readonly deliveryMicros: number
  /** One publish call, at the relay that takes it. */
  readonly publishMicros: number
  /** One publication that comes from Redis, at each relay with subscribers, whatever their number. */
  readonly receiveMicros: number
  /** At Redis: the one script call of a publish. */
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
