import type { RedisAddress } from './address.js'
import type { Shard } from './shard.js'

/** Which server keeps which channel. */
export interface Placement {
  /** Throws `EngineFault` where nobody knows. */
  shardOf(channel: string): Shard
  /** Where to listen for what nodes tell each other. It is told at the first of them that works. */
  readonly serviceShards: readonly Shard[]
  /** All servers work. */
  readonly isReady: boolean
  /** Why it is not. */
  readonly fault: string
  /** Looks again who keeps what, and settles when that is known. */
  refresh(): Promise<void>
  close(): void
}

/** `pulseTag`: with what tag a name belongs to this server. */
export type OpenShard = (address: RedisAddress, isSharded: boolean, pulseTag: () => string | null) => Shard
