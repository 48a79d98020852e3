/** `ttl` is a uint32 in the protocol. */
const MAX_TTL_SECONDS = 0xffff_ffff

/** The `ttl` that a client receives: whole seconds, at least 1, so that 0 stays free for "never". */
export const ttlSeconds = (expiresAtMs: number, nowMs: number): number =>
  Math.min(Math.max(Math.ceil((expiresAtMs - nowMs) / 1000), 1), MAX_TTL_SECONDS)
