import { UNUSED_POSITION_TTL_MS } from '../../core/engine.js'
import { KEY_SUFFIX } from './keys.js'
import { GENERATION, NOW, type Script, script } from './lua-script.js'
import { REMOVE_OLD_ENTRIES, WRITE_ARGUMENTS } from './publish-scripts.js'

// A map has the keys of `mapKeys`: position, stream, topic, entries, names, deadlines, versions. Its position is a hash as that of
// a stream, with two more fields: m (options of the namespace) and n (time of its next check in the index). An entry is its offset,
// a comma, its length in UTF-16 units, a comma and its body (map-messages.ts). Deadlines and the index of the maps that have
// deadlines are sorted sets by time. The index is in the hash slot of the map, so that every write keeps it complete.
//
// The position of a map expires when the map has not been used for its lifetime; the other keys stay for longer and are worthless
// without it. In a new generation (publish-scripts.ts) a map begins a new epoch without a stream. It keeps the entries that Redis
// still has, and its offsets continue, so that no entry has an offset of the future.

/** Arguments of `openMap` as one text: mode, `key_ttl`, size and TTL of the stream, lifetime, maximum of keys, whether changes carry the previous entry. */
const MAP_FUNCTIONS = `
local function openMap(keys, options, newEpoch, generation)
  local mode, keyTtl, size, streamTtl, ttl, maxKeys, previous = string.match(options, '^(%a),(%d+),(%d+),(%d+),(%d+),(%d+),(%d)$')
  local map = { keys = keys, pieces = {}, hasStream = mode ~= 'e', keyTtl = tonumber(keyTtl), size = size, streamTtl = streamTtl,
    ttl = tonumber(ttl), maxKeys = tonumber(maxKeys), deliversPrevious = previous == '1' }
  local epoch, known, offset, stored, check = unpack(redis.call('HMGET', keys[1], 'e', 'r', 'o', 'm', 'n'))
  if not stored or (string.sub(stored, 1, 1) ~= 'e') ~= map.hasStream then
    redis.call('UNLINK', keys[1], keys[2], keys[4], keys[5], keys[6], keys[7])
    redis.call('HSET', keys[1], 'e', newEpoch, 'r', generation, 'm', options)
    map.isNew, epoch, offset, check = true, newEpoch, 0, nil
  elseif known ~= generation or stored ~= options then
    if known ~= generation then
      redis.call('UNLINK', keys[2])
      epoch = newEpoch
    end
    if map.ttl == 0 then
      redis.call('UNLINK', keys[6])
      for _, key in ipairs({ keys[1], keys[4], keys[5], keys[7] }) do redis.call('PERSIST', key) end
    end
    redis.call('HSET', keys[1], 'e', epoch, 'r', generation, 'm', options)
  end
  map.epoch, map.offset, map.check = map.hasStream and epoch or '', tonumber(offset or 0), tonumber(check)
  map.isUnused = map.offset == 0
  return map
end

-- Restarts the lifetime of a map that was read, or of one that has never been written. That of an ephemeral map restarts with
-- writes only.
local function touchMap(map)
  if map.isNew or (map.hasStream and map.isUnused) then
    local unused = ${UNUSED_POSITION_TTL_MS}
    redis.call('PEXPIRE', map.keys[1], map.ttl > 0 and math.min(map.ttl, unused) or unused)
  elseif map.hasStream and map.ttl > 0 then
    redis.call('PEXPIRE', map.keys[1], map.ttl)
  end
end
`

const CHANGE_FUNCTIONS = `${WRITE_ARGUMENTS}${MAP_FUNCTIONS}
local function lengthOf(text)
  local _, continuations = string.gsub(text, '[\\128-\\191]', '')
  local _, surrogates = string.gsub(text, '[\\240-\\247]', '')
  return #text - continuations + surrogates
end

-- Takes the next offset and appends to the stream and to the message of the map. Returns the entry.
local function appendChange(map, body, length, replaced)
  if map.hasStream then
    map.offset = map.offset + 1
    redis.call('XADD', map.keys[2], 'MAXLEN', map.size, map.offset .. '-0', 'd', body, 't', now)
  end
  local entry = map.offset .. ',' .. length .. ',' .. body
  local hasPrevious = map.deliversPrevious and replaced
  table.insert(map.pieces, 'm' .. map.epoch .. (hasPrevious and ',1,' or ',0,'))
  table.insert(map.pieces, entry)
  if hasPrevious then table.insert(map.pieces, replaced) end
  return entry
end

local function removeEntry(map, key, entry)
  local tags = string.match(entry, '^[^\\n]*\\n([^\\n]*)\\n') or ''
  local body = now .. ',0,' .. lengthOf(key) .. ',-1,0r\\n' .. tags .. '\\n' .. key
  appendChange(map, body, lengthOf(body), entry)
  redis.call('HDEL', map.keys[4], key)
  redis.call('ZREM', map.keys[5], key)
  redis.call('ZREM', map.keys[6], key)
  redis.call('HDEL', map.keys[7], key)
end

-- Publishes the changes of a map and restarts its lifetime.
local function closeMap(map)
  local keys = map.keys
  if map.pieces[1] then
    if map.hasStream then
      redis.call('HSET', keys[1], 'o', map.offset)
      redis.call('PEXPIRE', keys[2], map.streamTtl)
    end
    redis.call(command, keys[3] .. topicSuffix, table.concat(map.pieces))
  elseif not map.isRenewed then
    return touchMap(map)
  end
  if map.ttl == 0 then
    if map.isUnused then redis.call('PERSIST', keys[1]) end
    return
  end
  redis.call('PEXPIRE', keys[1], map.ttl)
  if redis.call('PTTL', keys[4]) >= map.ttl then return end
  for at = 4, 7 do redis.call('PEXPIRE', keys[at], 2 * map.ttl) end
end

local function checkAt(map, index, time)
  redis.call('ZADD', index, time, map.keys[3])
  redis.call('HSET', map.keys[1], 'n', time)
end
`

/**
 * Changes a map. Keys: those of the map, its index, the ledger if there is one, then the keys of idempotency results. Arguments
 * after the first seven: epoch for a new map, options, then for each change: kind (w write, n if new, a if new and renew the TTL
 * otherwise, e if it exists, r remove), key, body, length of the body, version, epoch of the version, index of the result key or
 * ''. The reply for each is a letter (p changed, i idempotency key, v version, x key exists, n no such key, f full), the offset, a
 * comma and the epoch.
 */
export const CHANGE_MAP = script(`${CHANGE_FUNCTIONS}
local map = openMap(KEYS, ARGV[9], ARGV[8], generation)
local deadline = now + map.keyTtl
local hasDeadline = false

local function isOutdated(key, version, versionEpoch)
  local known, knownEpoch = string.match(redis.call('HGET', KEYS[7], key) or '', '^(%d+),(.*)$')
  if not known or (versionEpoch ~= '' and versionEpoch ~= knownEpoch) then return false end
  return tonumber(version) <= tonumber(known)
end

local function setDeadline(key)
  if map.keyTtl == 0 then return end
  redis.call('ZADD', KEYS[6], deadline, key)
  hasDeadline = true
end

local function write(kind, key, body, length, version, versionEpoch)
  if version ~= '0' and isOutdated(key, version, versionEpoch) then return 'v' end
  local replaced
  if map.deliversPrevious then replaced = redis.call('HGET', KEYS[4], key) end
  local exists = replaced or (replaced == nil and redis.call('HEXISTS', KEYS[4], key) == 1)
  if exists and (kind == 'n' or kind == 'a') then
    if kind == 'a' then
      setDeadline(key)
      map.isRenewed = true
    end
    return 'x'
  end
  if not exists then
    if kind == 'e' then return 'n' end
    if redis.call('HLEN', KEYS[4]) >= map.maxKeys then return 'f' end
    redis.call('ZADD', KEYS[5], 0, key)
  end
  redis.call('HSET', KEYS[4], key, appendChange(map, body, length, replaced))
  setDeadline(key)
  if version ~= '0' then
    redis.call('HSET', KEYS[7], key, version .. ',' .. versionEpoch)
    if map.ttl > 0 then redis.call('PEXPIRE', KEYS[7], 2 * map.ttl) end
  end
  return 'p'
end

local function remove(key)
  local entry = redis.call('HGET', KEYS[4], key)
  if not entry then return 'n' end
  removeEntry(map, key, entry)
  return 'p'
end

local replies = {}
for at = 10, #ARGV, 7 do
  local kind, key, body, length, version, versionEpoch, result = unpack(ARGV, at, at + 6)
  local resultKey = result ~= '' and KEYS[tonumber(result)]
  -- Not GET, which fails for a key of another type after earlier changes.
  local known = resultKey and redis.call('MGET', resultKey)[1]
  local reply
  if known then
    reply = 'i' .. known
  else
    local outcome = kind == 'r' and remove(key) or write(kind, key, body, length, version, versionEpoch)
    local position = map.offset .. ',' .. map.epoch
    if resultKey and outcome == 'p' then redis.call('SET', resultKey, position, 'PX', resultTtl) end
    reply = outcome .. position
  end
  table.insert(replies, reply)
end
closeMap(map)
if hasDeadline and not (map.check and map.check <= deadline) then checkAt(map, KEYS[8], deadline) end
return recordWrite(replies)
`)

/** Keys: those of the map, its index. Arguments: the first seven. */
export const CLEAR_MAP = script(`${WRITE_ARGUMENTS}
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[4], KEYS[5], KEYS[6], KEYS[7])
redis.call('ZREM', KEYS[8], KEYS[3])
return recordWrite('')
`)

/** More keys in one script would block Redis for other commands. */
const MAX_KEYS_PER_SCRIPT = 200
const MAX_BYTES_PER_SCRIPT = 256 * 1024
/** When to check a map again that could not be read. */
const CHECK_FAILED_MS = 10_000

/**
 * Removes keys whose deadline has passed, in all maps of the given indexes. In a Redis Cluster these are in different hash slots of
 * one server, so they are not declared as KEYS. Arguments after the first seven: epoch for maps of an older generation, key of a
 * lease for this work or '', its length, then the indexes. Reply: number of keys, time since the oldest deadline, 1 if more keys
 * may be due, error about an index or a map that could not be read or ''.
 */
export const EXPIRE_MAPS = script(`${CHANGE_FUNCTIONS}
local newEpoch, lease, leaseTime = unpack(ARGV, 8, 10)
if lease ~= '' and not redis.pcall('SET', lease, '1', 'NX', 'PX', leaseTime) then return recordWrite({ 0, 0, 0, '' }) end
local steps, bytes, removed, oldest, failure = 0, 0, 0, now, ''
local function isFull() return steps >= ${MAX_KEYS_PER_SCRIPT} or bytes >= ${MAX_BYTES_PER_SCRIPT} end

local function removeDue(map)
  local due = redis.call('ZRANGEBYSCORE', map.keys[6], '-inf', now, 'WITHSCORES', 'LIMIT', 0, ${MAX_KEYS_PER_SCRIPT})
  for at = 1, #due, 2 do
    if isFull() then break end
    local entry = redis.call('HGET', map.keys[4], due[at])
    if entry then removeEntry(map, due[at], entry) else redis.call('ZREM', map.keys[6], due[at]) end
    steps, bytes, removed = steps + 1, bytes + #(entry or ''), removed + 1
    oldest = math.min(oldest, due[at + 1])
  end
  if map.pieces[1] then closeMap(map) end
end

local function expireMap(index, topic)
  local keys = { topic .. '${KEY_SUFFIX.position}', topic .. '${KEY_SUFFIX.stream}', topic, topic .. '${KEY_SUFFIX.entries}',
    topic .. '${KEY_SUFFIX.entryNames}', topic .. '${KEY_SUFFIX.deadlines}', topic .. '${KEY_SUFFIX.versions}' }
  -- Fails before anything was changed if the hash slot is being moved.
  redis.call('EXISTS', keys[1], keys[2], keys[4], keys[5], keys[6], keys[7])
  local options = redis.call('HGET', keys[1], 'm')
  if options then
    local map = openMap(keys, options, newEpoch, generation)
    removeDue(map)
    local first = redis.call('ZRANGE', keys[6], 0, 0, 'WITHSCORES')
    if first[2] then return checkAt(map, index, first[2]) end
    redis.call('HDEL', keys[1], 'n')
  else
    redis.call('UNLINK', keys[4], keys[5], keys[6], keys[7])
  end
  redis.call('ZREM', index, topic)
end

for at = 11, #ARGV do
  local index = ARGV[at]
  local topics = redis.pcall('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, ${MAX_KEYS_PER_SCRIPT})
  if topics.err then failure = topics.err end
  for _, topic in ipairs(topics) do
    if isFull() then break end
    steps = steps + 1
    local isDone, cause = pcall(expireMap, index, topic)
    if not isDone then
      -- The error is a table, and a string before Redis 7.
      failure = type(cause) == 'table' and cause.err or tostring(cause)
      redis.pcall('ZADD', index, 'XX', now + ${CHECK_FAILED_MS}, topic)
    end
  end
end
return recordWrite({ removed, now - oldest, isFull() and 1 or 0, failure })
`)

/** Larger entries together would block Redis for other commands. */
const MAX_BYTES_PER_READ = 1024 * 1024

/**
 * Keys: those of the map, the ledger if there is one. Arguments: epoch for a new map, run_id, options, key before the first
 * entry or '', maximum number. Reply: epoch, offset, the last key if there are more entries or '', entries.
 */
export const READ_MAP = script(`${NOW}${GENERATION}${MAP_FUNCTIONS}
local newEpoch, runId, options, after, limit = unpack(ARGV)
local map = openMap(KEYS, options, newEpoch, generationOf(KEYS[8], runId))
touchMap(map)
local names, entries, bytes, last = {}, {}, 0, ''
if limit ~= '0' then
  names = redis.call('ZRANGEBYLEX', KEYS[5], after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit + 1)
end
local count = math.min(#names, tonumber(limit))
for from = 1, count, 100 do
  local to = math.min(from + 99, count)
  for _, entry in ipairs(redis.call('HMGET', KEYS[4], unpack(names, from, to))) do
    if entry then
      table.insert(entries, entry)
      bytes = bytes + #entry
    end
  end
  last = names[to]
  if bytes >= ${MAX_BYTES_PER_READ} then break end
end
return { map.epoch, map.offset, last ~= names[#names] and last or '', entries }
`)

/** Keys: position, entries. Argument: a key, or '' for the number of keys. Reply: its entry or nil, or the number. */
export const READ_ENTRY = script(`
local exists = redis.call('HEXISTS', KEYS[1], 'm') == 1
if ARGV[1] == '' then return exists and redis.call('HLEN', KEYS[2]) or 0 end
return exists and redis.call('HGET', KEYS[2], ARGV[1])
`)

/**
 * Keys: those of the map, the ledger if there is one. Arguments: epoch for a new map, run_id, options, range command, from, to,
 * count ('' for all, '0' for none). Reply: as READ_HISTORY.
 */
export const READ_MAP_STREAM = script(`${NOW}${GENERATION}${MAP_FUNCTIONS}${REMOVE_OLD_ENTRIES}
local newEpoch, runId, options, range, from, to, count = unpack(ARGV)
local map = openMap(KEYS, options, newEpoch, generationOf(KEYS[8], runId))
touchMap(map)
local oldest = removeOldEntries(KEYS[2], map.offset, tonumber(map.streamTtl))
if count == '0' then return { map.epoch, map.offset, {}, oldest } end
if count == '' then return { map.epoch, map.offset, redis.call(range, KEYS[2], from, to), oldest } end
return { map.epoch, map.offset, redis.call(range, KEYS[2], from, to, 'COUNT', count), oldest }
`)

/** Loaded on every new connection. */
export const MAP_SCRIPTS: readonly Script[] = [
  CHANGE_MAP,
  CLEAR_MAP,
  EXPIRE_MAPS,
  READ_MAP,
  READ_ENTRY,
  READ_MAP_STREAM
]
