import { NOW, type Script, script } from './lua-script.js'

// Presence is a hash of client to user and info, and a sorted set of client to the end of its lease.
const REMOVE_EXPIRED = `
local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for from = 1, #expired, 1000 do
  redis.call('HDEL', KEYS[1], unpack(expired, from, math.min(from + 999, #expired)))
end
if #expired > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now) end
`

const ADD_ENTRIES = `
local function addEntries(from)
  for at = from, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[2], now + ARGV[1], ARGV[at])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
`

/** Adds entries or renews their leases. Keys: entries, leases. Arguments: lease, then alternately client and entry. */
export const PRESENCE_ADD = script(`${NOW}${REMOVE_EXPIRED}${ADD_ENTRIES}
addEntries(2)
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

const STATE_TTL_MS = 30 * 24 * 3600 * 1000

// The state of a channel is a hash: s (state of its last event: o occupied, v or nothing vacated), p (since when the channel has
// the other state), i and t (id and time of the last event, until it is confirmed), l (end of the lease of that event), f (since
// when nodes have found the channel without a proxy). It exists while the channel is occupied or has an event. Its TTL only
// removes the data of a relay that is not used any more.
//
// `compare` records whether the presence differs from the last event. `nextCheck` returns the milliseconds until the channel
// must be checked, or -1 if it has no state. An occupied channel is checked when its last lease ends, because the leases of a
// node that was killed expire without a command.
const STATE_FUNCTIONS = `${NOW}${REMOVE_EXPIRED}
local function compare()
  local isReported = redis.call('HGET', KEYS[3], 's') == 'o'
  if isReported == (redis.call('ZCARD', KEYS[2]) > 0) then
    redis.call('HDEL', KEYS[3], 'p')
  else
    redis.call('HSETNX', KEYS[3], 'p', now)
  end
  redis.call('HDEL', KEYS[3], 'f')
  redis.call('PEXPIRE', KEYS[3], ${STATE_TTL_MS})
end
local function nextCheck(vacatedDelay)
  local state, changedAt, id, lease = unpack(redis.call('HMGET', KEYS[3], 's', 'p', 'i', 'l'))
  if id then return math.max(0, lease - now) end
  if changedAt then return state == 'o' and math.max(0, changedAt + vacatedDelay - now) or 0 end
  if state == 'o' then return math.max(1, redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2] - now) end
  redis.call('DEL', KEYS[3])
  return -1
end
-- The same after a change of presence, or nil if no new check is necessary.
local function checkAfterChange(vacatedDelay)
  local state, changedAt, id = unpack(redis.call('HMGET', KEYS[3], 's', 'p', 'i'))
  if id or (state == 'o' and not changedAt) then return false end
  return nextCheck(vacatedDelay)
end
`

/** Like PRESENCE_ADD, for a channel with state events. Keys: entries, leases, state. Reply: time until the next check, or nil. */
export const PRESENCE_ADD_WITH_STATE = script(`${STATE_FUNCTIONS}${ADD_ENTRIES}
addEntries(2)
compare()
return checkAfterChange(0)
`)

/** Like PRESENCE_REMOVE. Keys: entries, leases, state. Arguments: client, delay of vacated. Reply: time until the next check, or nil. */
export const PRESENCE_REMOVE_WITH_STATE = script(`${STATE_FUNCTIONS}
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
compare()
return checkAfterChange(ARGV[2])
`)

/**
 * Takes the event of a channel if one is due. Keys: entries, leases, state. Arguments: delay of vacated, lease, id for a new
 * event ('' takes none). Reply: time until the next check, then id, state and time of the event that was taken.
 */
export const STATE_TAKE = script(`${STATE_FUNCTIONS}
local vacatedDelay, lease, newId = unpack(ARGV)
compare()
local wait = nextCheck(vacatedDelay)
if wait ~= 0 or newId == '' then return { wait } end
local state, changedAt, id, time = unpack(redis.call('HMGET', KEYS[3], 's', 'p', 'i', 't'))
if not id then
  id = newId
  time = state == 'o' and changedAt + vacatedDelay or changedAt
  state = state == 'o' and 'v' or 'o'
  redis.call('HSET', KEYS[3], 's', state, 'i', id, 't', time)
  redis.call('HDEL', KEYS[3], 'p')
end
redis.call('HSET', KEYS[3], 'l', now + lease)
return { tonumber(lease), id, state, time }
`)

/**
 * Confirms or releases an event. Keys: entries, leases, state. Arguments: delay of vacated, id, '1' to confirm. Reply: time until
 * the next check.
 */
export const STATE_FINISH = script(`${STATE_FUNCTIONS}
local vacatedDelay, id, isConfirmed = unpack(ARGV)
if redis.call('HGET', KEYS[3], 'i') == id then
  if isConfirmed == '1' then redis.call('HDEL', KEYS[3], 'i', 't', 'l') else redis.call('HSET', KEYS[3], 'l', 0) end
end
compare()
return nextCheck(vacatedDelay)
`)

/**
 * Removes the state of a channel that has had no proxy for some time. While the nodes are being configured, others may already
 * have one for it. Keys: entries, leases, state. Arguments: that time, time until the next check. Reply: time until the next
 * check, or -1.
 */
export const STATE_FORGET = script(`${NOW}
if redis.call('EXISTS', KEYS[3]) == 0 then return -1 end
redis.call('HSETNX', KEYS[3], 'f', now)
if now - redis.call('HGET', KEYS[3], 'f') < tonumber(ARGV[1]) then return tonumber(ARGV[2]) end
redis.call('DEL', KEYS[3])
return -1
`)

// The index of a proxy is a sorted set of channel to the time of its next check. It is not in the hash slot of the channels, so
// it is written by commands of its own: after every change that requires an earlier check, and again whenever a node renews its
// presence. Each channel with a state is in the index, so that another node continues after a crash. A superfluous entry costs
// one check.

/**
 * Claims channels, so that other nodes do not check them at the same time. Keys: index, set of all indexes. Arguments: name of the
 * index, maximum number, length of the claim, then the channels (none: those that are due). Reply: end of the claim, time until
 * the next check in the index or -1, the channels.
 */
export const STATE_INDEX_CLAIM = script(`${NOW}
local name, limit, length = unpack(ARGV, 1, 3)
local channels = { unpack(ARGV, 4) }
if #channels == 0 then channels = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, limit) end
local claim = now + length
for _, channel in ipairs(channels) do redis.call('ZADD', KEYS[1], 'XX', claim, channel) end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if not first[1] then redis.call('SREM', KEYS[2], name) end
return { claim, first[1] and math.max(0, first[2] - now) or -1, channels }
`)

/** Counts the channels that are due. Keys: index. */
export const STATE_INDEX_COUNT = script(`${NOW}
return redis.call('ZCOUNT', KEYS[1], '-inf', now)
`)

/**
 * Sets the next checks. An earlier check stays, except that of the caller's own claim; and only its own claim is removed, because
 * another entry may be newer than the state that the caller has seen. Keys: index, set of all indexes. Arguments: name of the
 * index, then for each channel: its name, time until the check (-1 removes the channel), end of the claim or ''.
 */
export const STATE_INDEX_WRITE = script(`${NOW}
for at = 2, #ARGV, 3 do
  local channel, wait, claim = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local known = tonumber(redis.call('ZSCORE', KEYS[1], channel) or '')
  local isClaimed = known ~= nil and known == claim
  if wait < 0 then
    if isClaimed then redis.call('ZREM', KEYS[1], channel) end
  elseif known == nil or isClaimed or known > now + wait then
    redis.call('ZADD', KEYS[1], now + wait, channel)
  end
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('SADD', KEYS[2], ARGV[1])
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ${STATE_TTL_MS}) end
else
  redis.call('SREM', KEYS[2], ARGV[1])
end
`)

/** Loaded on every new connection. */
export const PRESENCE_SCRIPTS: readonly Script[] = [
  PRESENCE_ADD,
  PRESENCE_REMOVE,
  PRESENCE_READ,
  PRESENCE_COUNT,
  PRESENCE_ADD_WITH_STATE,
  PRESENCE_REMOVE_WITH_STATE,
  STATE_TAKE,
  STATE_FINISH,
  STATE_FORGET,
  STATE_INDEX_CLAIM,
  STATE_INDEX_WRITE,
  STATE_INDEX_COUNT
]
