import { KEY_SUFFIX } from './keys.js'
import { GENERATION, NOW, script, WRITE_NUMBER } from './lua-script.js'

// The position of a channel is a hash: e (epoch), o (offset), r (generation), v (version), w (epoch of the version). A server
// that was restarted from an older file, or a replica that took over, may have lost the latest publications and would assign
// their offsets again. The nodes then begin a new generation for the server. The next use of a position of an older generation
// begins a new epoch, so that clients do not recover with offsets that were assigned twice.
//
// Channels without a position share one. It has no offset, and expires after the TTL of positions: a channel that has begun with
// its epoch keeps its own position for at least as long, so the next one after that has another epoch.
const POSITION_FUNCTIONS = `
local function positionOf(key, stream, unused, newEpoch, generation, ttl)
  local position = redis.call('HMGET', key, 'e', 'r', 'o', 'v', 'w', 'm')
  if position[1] and position[2] == generation and not position[6] then return position, true end
  redis.call('DEL', key, stream)
  -- A position with options of a map (map-scripts.ts) is from the time before the namespace was changed to a stream. The channel
  -- may have been a stream with the shared epoch before that.
  if position[6] then redis.call('DEL', unused) end
  local shared = redis.call('HMGET', unused, 'e', 'r')
  if shared[1] and shared[2] == generation then return shared, false end
  redis.call('HSET', unused, 'e', newEpoch, 'r', generation)
  redis.call('PEXPIRE', unused, ttl)
  return { newEpoch, generation }, false
end
`

/** How long the result of a publication with an idempotency key is stored. */
export const IDEMPOTENT_RESULT_TTL_MS = String(5 * 60 * 1000)

/** More publications in one script would block Redis for other commands. */
export const MAX_PUBLICATIONS_PER_SCRIPT = 16

// One expression, because Lua hashes every intermediate string.
const JOINED_PIECES = Array.from(
  { length: 2 * MAX_PUBLICATIONS_PER_SCRIPT },
  (_, index) => `(pieces[${index + 1}] or '')`
).join(' .. ')

/**
 * The first arguments of every script that publishes: node, number of the write, ledger (all three '' in a Redis Cluster), run_id,
 * publish command, topic suffix, lifetime of idempotency results. The script returns through `recordWrite`.
 */
export const WRITE_ARGUMENTS = `${NOW}${WRITE_NUMBER}${GENERATION}
local node, number, ledger, runId, command, topicSuffix, resultTtl = unpack(ARGV, 1, 7)
local generation = generationOf(ledger, runId)
local function recordWrite(replies)
  if ledger ~= '' then writeNumber(ledger, node, number) end
  return replies
end
`

// Appends to the stream and publishes in one step, so that history and messages have the same order. Several publications read
// the position once and are sent as one message. A publication is five arguments: body, its length in UTF-16 units, version, epoch of the
// version, and a value that `keyOf` converts to the key of its idempotency result, or ''. The reply for each is a letter
// (p published, i suppressed by idempotency key, v suppressed by version), the offset, a comma and the epoch.
const PUBLISH_FUNCTIONS = `${WRITE_ARGUMENTS}${POSITION_FUNCTIONS}
local function publishWithHistory(keys, history, publications, from, keyOf)
  local positionKey, streamKey, topic, unusedKey = unpack(keys)
  local newEpoch, size, ttl, positionTtl = unpack(history)
  local position, isStored = positionOf(positionKey, streamKey, unusedKey, newEpoch, generation, positionTtl)
  local epoch, offset = position[1], tonumber(position[3] or 0)
  local lastVersion, lastVersionEpoch = position[4] or 0, position[5] or ''
  local replies, pieces = {}, {}

  local function append(body, length, version, versionEpoch, resultKey)
    -- Not GET, which fails for a key of another type after earlier publications were appended.
    local known = resultKey and redis.call('MGET', resultKey)[1]
    if known then return 'i' .. known end
    if version ~= '0' then
      local isSame = versionEpoch == '' or versionEpoch == lastVersionEpoch
      if isSame and tonumber(version) <= tonumber(lastVersion) then return 'v' .. offset .. ',' .. epoch end
      lastVersion, lastVersionEpoch = version, versionEpoch
    end
    offset = offset + 1
    local result = offset .. ',' .. epoch
    redis.call('XADD', streamKey, 'MAXLEN', size, offset .. '-0', 'd', body, 't', now)
    if resultKey then redis.call('SET', resultKey, result, 'PX', resultTtl) end
    table.insert(pieces, 'p' .. result .. ',' .. length .. ',')
    table.insert(pieces, body)
    return 'p' .. result
  end

  for at = from, #publications, 5 do
    local body, length, version, versionEpoch, resultKey = unpack(publications, at, at + 4)
    table.insert(replies, append(body, length, version, versionEpoch, keyOf(resultKey)))
  end
  if pieces[1] then
    if not isStored then redis.call('HSET', positionKey, 'e', epoch, 'r', generation) end
    redis.call('HSET', positionKey, 'o', offset, 'v', lastVersion, 'w', lastVersionEpoch)
    redis.call('PEXPIRE', streamKey, ttl)
    redis.call(command, topic .. topicSuffix, #pieces == 2 and pieces[1] .. pieces[2] or ${JOINED_PIECES})
  end
  redis.call('PEXPIRE', positionKey, positionTtl)
  return replies
end
`

/**
 * Keys: position, stream, topic, shared position of channels without one, the ledger if there is one, then the keys of idempotency
 * results. Arguments after the first seven: new epoch, size and TTL of the stream, TTL of the position, then the publications, each with the index
 * of its result key.
 */
export const PUBLISH_WITH_HISTORY = script(`${PUBLISH_FUNCTIONS}
local function keyOf(index) return KEYS[tonumber(index)] end
return recordWrite(publishWithHistory(KEYS, { unpack(ARGV, 8, 11) }, ARGV, 12, keyOf))
`)

/**
 * Publishes to many channels of one server. In a Redis Cluster their keys are in different hash slots of this server, so they
 * are not declared as KEYS. Arguments after the first seven: key of the body or '', the body if there is no key, length,
 * version, epoch of the version, idempotency key or ''. Then for each channel: topic, shared position of channels without one, new
 * epoch, size ('' without history) and TTL of the stream, TTL of the position. A channel to which nothing was published has the reply e and an error.
 */
export const PUBLISH_TO_MANY = script(`${PUBLISH_FUNCTIONS}
local bodyKey, body, length, version, versionEpoch, idempotencyKey = unpack(ARGV, 8, 13)
if bodyKey ~= '' then body = redis.call('GET', bodyKey) end
if not body then return redis.error_reply('BODYGONE the body of a broadcast has been deleted') end
local function identity(key) return key end

local function publish(topic, unusedKey, newEpoch, size, ttl, positionTtl)
  local resultKey = idempotencyKey ~= '' and topic .. '${KEY_SUFFIX.result}' .. idempotencyKey
  if size ~= '' then
    local publication = { body, length, version, versionEpoch, resultKey }
    local keys = { topic .. '${KEY_SUFFIX.position}', topic .. '${KEY_SUFFIX.stream}', topic, unusedKey }
    return publishWithHistory(keys, { newEpoch, size, ttl, positionTtl }, publication, 1, identity)[1]
  end
  local known = resultKey and redis.call('MGET', resultKey)[1]
  if known then return 'i' .. known end
  if resultKey then redis.call('SET', resultKey, '0,', 'PX', resultTtl) end
  redis.call(command, topic .. topicSuffix, 'p0,,' .. length .. ',' .. body)
  return 'p0,'
end

local replies = {}
for at = 14, #ARGV, 6 do
  local isPublished, reply = pcall(publish, unpack(ARGV, at, at + 5))
  -- The error is a table, and a string before Redis 7.
  if not isPublished then reply = 'e' .. (type(reply) == 'table' and reply.err or tostring(reply)) end
  table.insert(replies, reply)
end
return recordWrite(replies)
`)

/** Keys: topic, idempotency result. Arguments: message, publish command, TTL of the result, topic suffix. */
export const PUBLISH_IDEMPOTENT = script(`
if redis.call('EXISTS', KEYS[2]) == 1 then return 'i' .. redis.call('GET', KEYS[2]) end
redis.call('SET', KEYS[2], '0,', 'PX', ARGV[3])
redis.call(ARGV[2], KEYS[1] .. ARGV[4], ARGV[1])
return 'p0,'
`)

// An entry of the stream has the fields d (body) and t (time of publication). Its id is the offset, so ids are consecutive. The
// stream itself expires when its newest entry does.
export const REMOVE_OLD_ENTRIES = `
local function entryAt(stream, id) return redis.call('XRANGE', stream, id, '+', 'COUNT', 1)[1] end
local function isOld(entry, ttl) return entry[2][4] ~= nil and tonumber(entry[2][4]) <= now - ttl end
local function offsetOf(entry) return tonumber(string.match(entry[1], '^%d+')) end
-- Removes the entries that are older than the TTL. Returns the offset of the oldest one left, or the one after the top.
local function removeOldEntries(stream, top, ttl)
  local first = entryAt(stream, '-')
  if not first then return top + 1 end
  -- Without a TTL the namespace has no history any more, and its entries expire with the stream.
  if ttl <= 0 or not isOld(first, ttl) then return offsetOf(first) end
  local old, young = offsetOf(first), top + 1
  while young - old > 1 do
    local middle = math.floor((old + young) / 2)
    local entry = entryAt(stream, middle)
    if entry and not isOld(entry, ttl) then young = middle else old = middle end
  end
  redis.call('XTRIM', stream, 'MINID', young)
  return young
end
`

/**
 * Keys: position, stream, shared position of channels without one, the ledger if there is one. Arguments: new epoch, run_id, TTL of
 * the position, TTL of a position at offset 0, range command, from, to, count ('' for all, '0' for none), TTL of publications, '1'
 * to store a position at offset 0. Reply: epoch, offset, stream entries, offset of the oldest stored entry.
 */
export const READ_HISTORY = script(`${NOW}${GENERATION}${POSITION_FUNCTIONS}${REMOVE_OLD_ENTRIES}
local generation = generationOf(KEYS[4], ARGV[2])
local position, isStored = positionOf(KEYS[1], KEYS[2], KEYS[3], ARGV[1], generation, ARGV[3])
local epoch, offset = position[1], tonumber(position[3] or 0)
if ARGV[10] == '1' and not isStored then redis.call('HSET', KEYS[1], 'e', epoch, 'r', generation) end
redis.call('PEXPIRE', KEYS[1], offset == 0 and ARGV[4] or ARGV[3])
local oldest = removeOldEntries(KEYS[2], offset, tonumber(ARGV[9]))
if ARGV[8] == '0' then return { epoch, offset, {}, oldest } end
if ARGV[8] == '' then return { epoch, offset, redis.call(ARGV[5], KEYS[2], ARGV[6], ARGV[7]), oldest } end
return { epoch, offset, redis.call(ARGV[5], KEYS[2], ARGV[6], ARGV[7], 'COUNT', ARGV[8]), oldest }
`)
