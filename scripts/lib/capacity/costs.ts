import type { CpuCosts } from './relay-cpu.js'
import type { MemoryCosts } from './relay-memory.js'

export interface Costs extends CpuCosts, MemoryCosts {
  /** Additional time of one publication from Redis, at each relay that has subscribers. */
  readonly receiveMicros: number
  /** At Redis: the script call of a publish. */
  readonly redisPublishMicros: number
  /** At Redis: the publication to one relay. */
  readonly redisPushMicros: number
  /** Connect, token and subscription of one client. */
  readonly connectMicros: number
  /** Buffers of the kernel for one idle TCP connection. */
  readonly kernelKib: number
}

/**
 * CPU time and memory of the relay: `npm run bench -- capacity` on one core of a shared x86-64 machine with Node.js 24, all
 * features on, rounded. The costs of Redis and of connecting are from `npm run bench -- relay`. `kernelKib` is an estimate.
 * `npm run capacity -- --machine <file>` uses measurements of another machine.
 */
export const MEASURED: Costs = {
  publishMicros: 30,
  wakeMicros: 820,
  pauseMs: 7,
  deliveryMicros: 7,
  byteNanos: 0.2,
  connectionMicros: 0.6,
  receiveMicros: 20,
  redisPublishMicros: 34,
  redisPushMicros: 5,
  connectMicros: 240,
  idleMib: 114,
  workMib: 15,
  connectionKib: 8,
  kernelKib: 8
}
