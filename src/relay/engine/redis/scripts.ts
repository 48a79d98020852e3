import { createHash } from 'node:crypto'

/** A script, and the name by which Redis knows it once it has been loaded. */
export interface Script {
  readonly text: string
  readonly sha: string
}

const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') })

// Every script that places something begins so. The place of a channel is a hash: e(poch), o(ffset), r(un), v(ersion),
// w (the version's epoch). It belongs to one run of a Redis server: one that was restarted from an older file, or a replica
// that took over, may have lost the latest publications, and would give their offsets to others. So it begins a new epoch,
// and clients learn that they cannot recover, where they would otherwise miss something without knowing.
const PLACE = `
local place = redis.call('HMGET', KEYS[1], 'e', 'r', 'o', 'v', 'w')
if not place[1] or place[2] ~= ARGV[2] then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'e', ARGV[1], 'r', ARGV[2])
  place = { ARGV[1], ARGV[2] }
end
local epoch = place[1]
local function keep(key, ms)
  if ms == '0' then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, ms) end
end
`

/**
 * Appends and publishes in one step, so that the order of the history and of the messages is the same for ever.
 *
 * Keys: place, stream, channel, and one for the result where it has an idempotency key. Arguments: epoch to begin with, run,
 * body, size and time to live of the stream, time to live of the place, version, epoch of the version, command that
 * publishes, how long the result is known, end of the channel's name. Answers with p, i or v (made; suppressed by its key; by its version), offset, epoch.
 */
export const PUBLISH_KEPT = script(`
if KEYS[4] then
  local known = redis.call('GET', KEYS[4])
  if known then return 'i' .. known end
end
${PLACE}
if ARGV[7] ~= '0' then
  local isSame = ARGV[8] == '' or ARGV[8] == (place[5] or '')
  if isSame and tonumber(ARGV[7]) <= tonumber(place[4] or 0) then
    return 'v' .. (place[3] or 0) .. ',' .. epoch
  end
  redis.call('HSET', KEYS[1], 'v', ARGV[7], 'w', ARGV[8])
end
local offset = redis.call('HINCRBY', KEYS[1], 'o', 1)
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[4], offset .. '-0', 'd', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
keep(KEYS[1], ARGV[6])
local result = offset .. ',' .. epoch
if KEYS[4] then redis.call('SET', KEYS[4], result, 'PX', ARGV[10]) end
redis.call(ARGV[9], KEYS[3] .. ARGV[11], 'p' .. result .. ',' .. ARGV[3])
return 'p' .. result
`)

/** Keys: channel, result. Arguments: message, command that publishes, how long the result is known, end of the channel's name. */
export const PUBLISH_ONCE = script(`
if redis.call('EXISTS', KEYS[2]) == 1 then return 'i' .. redis.call('GET', KEYS[2]) end
redis.call('SET', KEYS[2], '0,', 'PX', ARGV[3])
redis.call(ARGV[2], KEYS[1] .. ARGV[4], ARGV[1])
return 'p0,'
`)

/**
 * Keys: place, stream. Arguments: epoch to begin with, run, time to live of the place, of one that nothing was published at,
 * command that reads, from, to, how many ('' for all, '0' for none). Answers with epoch, offset, entries.
 */
export const READ = script(`${PLACE}
local offset = tonumber(place[3] or 0)
keep(KEYS[1], offset == 0 and ARGV[4] or ARGV[3])
if ARGV[8] == '0' then return { epoch, offset, {} } end
if ARGV[8] == '' then return { epoch, offset, redis.call(ARGV[5], KEYS[2], ARGV[6], ARGV[7]) } end
return { epoch, offset, redis.call(ARGV[5], KEYS[2], ARGV[6], ARGV[7], 'COUNT', ARGV[8]) }
`)

// Presence is a hash of client to user and info, and a sorted set of client to the time when its lease ends, by the clock of
// Redis, so that nodes need not agree on the time.
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`
const PURGE = `
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for from = 1, #gone, 1000 do
  redis.call('HDEL', KEYS[1], unpack(gone, from, math.min(from + 999, #gone)))
end
if #gone > 0 then redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now) end
`

/** Keys: entries, leases. Arguments: lease, then client and entry in turns. For who is new and who is still there. */
export const PRESENCE_ADD = script(`${NOW}${PURGE}
for at = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  redis.call('ZADD', KEYS[2], now + ARGV[1], ARGV[at])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
`)

/** Keys: entries, leases. Arguments: client. */
export const PRESENCE_REMOVE = script(`
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
`)

/** Keys: entries, leases. Answers with client and entry in turns. */
export const PRESENCE_READ = script(`${NOW}${PURGE}
return redis.call('HGETALL', KEYS[1])
`)

/** Keys: entries, leases. Answers with clients and users; an entry begins with its user. */
export const PRESENCE_COUNT = script(`${NOW}${PURGE}
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

export const SCRIPTS: readonly Script[] = [
  PUBLISH_KEPT,
  PUBLISH_ONCE,
  READ,
  PRESENCE_ADD,
  PRESENCE_REMOVE,
  PRESENCE_READ,
  PRESENCE_COUNT
]
