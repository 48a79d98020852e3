import type { CpuCosts } from './relay-cpu.js'
import type { MemoryCosts } from './relay-memory.js'

export interface Costs extends CpuCosts, MemoryCosts {
  /** Additional time of one publication from Redis, at each relay that has subscribers. */
  readonly receiveMicros: number
  /** At Redis: the script call of a publish. */
  readonly redisPublishMicros: number
  /** At Redis: the publication to one relay. */
  readonly redisPushMicros: number
  /** Connect, token and subscription of one client, in a relay with workers. In one process it is less. */
  readonly connectMicros: number
  /** Buffers of the kernel for one idle TCP connection. */
  readonly kernelKib: number
}

/**
 * CPU time and memory of the relay on one core of an AMD EPYC with Node.js 24, all features on, rounded: fitted to two runs each
 * of `npm run bench -- capacity` and, with 100,000 connections, `npm run bench -- scale`. `receiveMicros` is of
 * `npm run bench -- relay`, the costs of Redis are of `npm run bench -- redis-scale`. `kernelKib` is a reserve.
 * `npm run capacity -- --machine <file>` uses measurements of another machine.
 */
export const MEASURED: Costs = {
  publishMicros: 85,
  wakeMicros: 500,
  pauseMs: 17,
  deliveryMicros: 5,
  coldMicros: 12,
  byteNanos: 0.05,
  connectionMicros: 1.3,
  receiveMicros: 15,
  redisPublishMicros: 40,
  redisPushMicros: 7,
  connectMicros: 240,
  idleMib: 120,
  workMib: 16,
  connectionKib: 9,
  kernelKib: 8
}
