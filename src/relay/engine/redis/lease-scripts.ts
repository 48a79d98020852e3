import { TAKE_TOKENS } from '../../../shared/token-bucket-script.js'
import { NOW, script } from './lua-script.js'

/**
 * Keys: sorted set of a user's connections to the end of their leases. Arguments: lease, limit or '' for none, connection. Reply:
 * the connections that use up the limit, or an empty list if this one was added.
 */
export const USER_CONNECTION_ADD = script(`${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local limit = tonumber(ARGV[2])
if limit and redis.call('ZCARD', KEYS[1]) >= limit and not redis.call('ZSCORE', KEYS[1], ARGV[3]) then
  return redis.call('ZRANGE', KEYS[1], 0, -1)
end
redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {}
`)

/** Keys: the token buckets of a user. See `TAKE_TOKENS`. */
export const USER_RATES_TAKE = script(TAKE_TOKENS)
