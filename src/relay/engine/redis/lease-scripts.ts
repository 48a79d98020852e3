import { NOW, script } from './lua-script.js'

// Presence is a hash of client to user and info, and a sorted set of client to the end of its lease.
const REMOVE_EXPIRED = `
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for from = 1, #expired, 1000 do
  redis.call('HDEL', KEYS[1], unpack(expired, from, math.min(from + 999, #expired)))
end
if #expired > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now) end
`

/** Adds entries or renews their leases. Keys: entries, leases. Arguments: lease, then alternately client and entry. */
export const PRESENCE_ADD = script(`${NOW}${REMOVE_EXPIRED}
for at = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  redis.call('ZADD', KEYS[2], now + ARGV[1], ARGV[at])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
`)

/** Keys: entries, leases. Argument: client. */
export const PRESENCE_REMOVE = script(`
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
`)

/** Keys: entries, leases. Reply: alternately client and entry. */
export const PRESENCE_READ = script(`${NOW}${REMOVE_EXPIRED}
return redis.call('HGETALL', KEYS[1])
`)

/** Keys: entries, leases. Reply: number of clients, number of users. An entry begins with its user. */
export const PRESENCE_COUNT = script(`${NOW}${REMOVE_EXPIRED}
local seen, users = {}, 0
for _, entry in ipairs(redis.call('HVALS', KEYS[1])) do
  local user = string.match(entry, '^[^\\n]*')
  if not seen[user] then
    seen[user] = true
    users = users + 1
  end
end
return { redis.call('HLEN', KEYS[1]), users }
`)

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
