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
 * features on, rounded. `publishMicros` is higher than the fit, for rates above those of the calibration. `connectionMicros` and
 * `connectionKib` are of 100,000 connections (`npm run bench -- scale`), the costs of Redis of `npm run bench -- relay`. `kernelKib`
 * is a reserve. `npm run capacity -- --machine <file>` uses measurements of another machine.
 */
export const MEASURED: Costs = {
  publishMicros: 30,
  wakeMicros: 740,
  pauseMs: 3,
  deliveryMicros: 10,
  coldMicros: 13,
  byteNanos: 0.1,
  connectionMicros: 1.9,
  receiveMicros: 55,
  redisPublishMicros: 34,
  redisPushMicros: 5,
  connectMicros: 460,
  idleMib: 118,
  workMib: 13,
  connectionKib: 9,
  kernelKib: 8
}
