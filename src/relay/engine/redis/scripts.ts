import { createHash } from 'node:crypto'

/** A script, and the name by which Redis knows it once it has been loaded. */
export interface Script {
  readonly text: string
  readonly sha: string
}

const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') })

// Every script that places something begins so. The place of a channel is a hash: e(poch), o(ffset), r (its generation),
// v(ersion), w (the version's epoch). A server that was restarted from an older file, or a replica that took over, may have lost the
// latest publications, and would give their offsets to others. A generation begins with each such loss, and is named by the run of the
// server that it began with. A place of another generation begins a new epoch, and clients learn that they cannot recover, where
// they would otherwise miss something without knowing.
//
// The ledger of a server is a hash: r (the run that the nodes agreed on last), g(eneration), s:<node> (the number of its last write),
// t:<node> (when it was last there), v:<node> (the run that it vouches for). In a cluster there is none, because a script reaches one slot only:
// every run is a generation there.
const WRITE_NUMBER = `
-- A script that Redis did not know is sent again, behind later ones: the number never falls.
local function writeNumber(ledger, node, number)
  local field = 's:' .. node
  local known = redis.call('HGET', ledger, field)
  if not known or tonumber(known) < tonumber(number) then redis.call('HSET', ledger, field, number) end
end
`
const POSITION = `${WRITE_NUMBER}
local function generationOf(ledger, run)
  local generation = redis.call('HGET', ledger, 'g')
  if generation then return generation end
  redis.call('HSET', ledger, 'r', run, 'g', run)
  return run
end
local function placeOf(key, stream, newEpoch, generation)
  local place = redis.call('HMGET', key, 'e', 'r', 'o', 'v', 'w')
  if place[1] and place[2] == generation then return place end
  redis.call('DEL', key, stream)
  redis.call('HSET', key, 'e', newEpoch, 'r', generation)
  return { newEpoch, generation }
end
local function keep(key, ms)
  if ms == '0' then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, ms) end
end
`

/** How long the result of a publication with an idempotency key is known. */
export const IDEMPOTENT_RESULT_TTL_MS = String(5 * 60 * 1000)

/** How many publications are made at once at most: more would keep Redis from its other work for too long. */
export const MAX_AT_ONCE = 16

// One expression, because each text that Lua makes on its way to a longer one costs a look at every character of it.
const JOINED = Array.from({ length: 2 * MAX_AT_ONCE }, (_, index) => `(pieces[${index + 1}] or '')`).join(' .. ')

// Appends and publishes in one step, so that the order of the history and of the messages is the same for ever. Several
// publications at once look for their place once, and leave in one message. Every script with it has as its first arguments: node,
// number of its write, ledger (all three '' in a cluster), run, command that publishes, end of the channel's name, how long results
// are known; and it ends with `written`. A publication is five arguments: body and its length as its readers count, version, epoch of
// the version, and what `keyOf` finds the key for its result by, or ''. Answers for each with p, i or v (made; suppressed by its key; by its version), offset, epoch.
const PUBLISHING = `${POSITION}
local node, number, ledger, run, command, topicEnd, knownMs = unpack(ARGV, 1, 7)
local generation = ledger == '' and run or generationOf(ledger, run)

local function written(answers)
  if ledger ~= '' then writeNumber(ledger, node, number) end
  return answers
end

local function publishKept(placeKey, streamKey, topic, newEpoch, size, ttl, placeTtl, publications, from, keyOf)
  local place = placeOf(placeKey, streamKey, newEpoch, generation)
  local epoch, offset, lastVersion, lastVersionEpoch = place[1], tonumber(place[3] or 0), place[4] or 0, place[5] or ''
  local answers, pieces = {}, {}

  local function append(body, length, version, versionEpoch, resultKey)
    -- Not GET, which would fail at a key that somebody else made, when others have been appended already.
    local known = resultKey and redis.call('MGET', resultKey)[1]
    if known then return 'i' .. known end
    if version ~= '0' then
      local isSame = versionEpoch == '' or versionEpoch == lastVersionEpoch
      if isSame and tonumber(version) <= tonumber(lastVersion) then return 'v' .. offset .. ',' .. epoch end
      lastVersion, lastVersionEpoch = version, versionEpoch
    end
    offset = offset + 1
    local result = offset .. ',' .. epoch
    redis.call('XADD', streamKey, 'MAXLEN', size, offset .. '-0', 'd', body)
    if resultKey then redis.call('SET', resultKey, result, 'PX', knownMs) end
    table.insert(pieces, 'p' .. result .. ',' .. length .. ',')
    table.insert(pieces, body)
    return 'p' .. result
  end

  for at = from, #publications, 5 do
    local body, length, version, versionEpoch, resultKey = unpack(publications, at, at + 4)
    table.insert(answers, append(body, length, version, versionEpoch, keyOf(resultKey)))
  end
  if pieces[1] then
    redis.call('HSET', placeKey, 'o', offset, 'v', lastVersion, 'w', lastVersionEpoch)
    redis.call('PEXPIRE', streamKey, ttl)
    redis.call(command, topic .. topicEnd, #pieces == 2 and pieces[1] .. pieces[2] or ${JOINED})
  end
  keep(placeKey, placeTtl)
  return answers
end
`

/**
 * Keys: place, stream, channel, ledger where there is one, then those for the results of publications with an idempotency key.
 * Arguments behind the first seven: epoch to begin with, size and time to live of the stream, time to live of the place, then the
 * publications, which name the key for their result by its number.
 */
export const PUBLISH_WITH_HISTORY = script(`${PUBLISHING}
local newEpoch, size, ttl, placeTtl = unpack(ARGV, 8, 11)
local function keyOf(number) return KEYS[tonumber(number)] end
return written(publishKept(KEYS[1], KEYS[2], KEYS[3], newEpoch, size, ttl, placeTtl, ARGV, 12, keyOf))
`)

/**
 * One publication on many channels of one server. Their keys are in different slots of a cluster, so they are not declared;
 * all of them are at this server. Arguments behind the first seven: key of the body or '', body where there is no key, length,
 * version, epoch of the version, idempotency key or ''. Then for each channel: name, epoch to begin with, size ('' without
 * history) and time to live of the stream, time to live of the place. Answers for each as the others do, or with e and an error:
 * then nothing was published there.
 */
export const PUBLISH_TO_MANY = script(`${PUBLISHING}
local bodyKey, body, length, version, versionEpoch, idempotencyKey = unpack(ARGV, 8, 13)
if bodyKey ~= '' then body = redis.call('GET', bodyKey) end
if not body then return redis.error_reply('BODYGONE the body of a broadcast has been deleted') end
local function itself(key) return key end

local function publish(name, newEpoch, size, ttl, placeTtl)
  local resultKey = idempotencyKey ~= '' and name .. 'result:' .. idempotencyKey
  if size ~= '' then
    local publication = { body, length, version, versionEpoch, resultKey }
    return publishKept(name .. 'place', name .. 'stream', name, newEpoch, size, ttl, placeTtl, publication, 1, itself)[1]
  end
  local known = resultKey and redis.call('MGET', resultKey)[1]
  if known then return 'i' .. known end
  if resultKey then redis.call('SET', resultKey, '0,', 'PX', knownMs) end
  redis.call(command, name .. topicEnd, 'p0,,' .. length .. ',' .. body)
  return 'p0,'
end

local answers = {}
for at = 14, #ARGV, 5 do
  local isDone, answer = pcall(publish, unpack(ARGV, at, at + 4))
  -- Older versions of Redis fail with a text.
  if not isDone then answer = 'e' .. (type(answer) == 'table' and answer.err or tostring(answer)) end
  table.insert(answers, answer)
end
return written(answers)
`)

/** Keys: channel, result. Arguments: message, command that publishes, how long the result is known, end of the channel's name. */
export const PUBLISH_IDEMPOTENT = script(`
if redis.call('EXISTS', KEYS[2]) == 1 then return 'i' .. redis.call('GET', KEYS[2]) end
redis.call('SET', KEYS[2], '0,', 'PX', ARGV[3])
redis.call(ARGV[2], KEYS[1] .. ARGV[4], ARGV[1])
return 'p0,'
`)

/**
 * Keys: place, stream, ledger where there is one. Arguments: epoch to begin with, run, time to live of the place, of one that nothing
 * was published at, command that reads, from, to, how many ('' for all, '0' for none). Answers with epoch, offset, entries.
 */
export const READ = script(`${POSITION}
local place = placeOf(KEYS[1], KEYS[2], ARGV[1], KEYS[3] and generationOf(KEYS[3], ARGV[2]) or ARGV[2])
local epoch, offset = place[1], tonumber(place[3] or 0)
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

/** Keys: places. Arguments: epoch and offset of each, in turns. 1 if one of them is behind, or has another epoch. */
export const FIND_ROLLBACK = script(`
for at, key in ipairs(KEYS) do
  -- A key that somebody else made says nothing.
  local place = redis.pcall('HMGET', key, 'e', 'o')
  local epoch, offset = ARGV[2 * at - 1], tonumber(ARGV[2 * at])
  if place[1] and (place[1] ~= epoch or tonumber(place[2] or 0) < offset) then return 1 end
end
return 0
`)

/** Keys: ledger, topic. Arguments: node, number of this write, lease, time to live of the ledger, command that publishes, end of the topic's name. */
export const BEAT = script(`${NOW}${WRITE_NUMBER}
local node, number, lease, ttl, publish, topicEnd = unpack(ARGV)
writeNumber(KEYS[1], node, number)
redis.call('HSET', KEYS[1], 't:' .. node, now)
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local other = string.match(fields[at], '^t:(.*)')
  if other and tonumber(fields[at + 1]) < now - lease then
    redis.call('HDEL', KEYS[1], 's:' .. other, 't:' .. other, 'v:' .. other)
  end
end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call(publish, KEYS[2] .. topicEnd, '')
`)

/**
 * Keys: ledger. Arguments: run of the server, node, the last number that was acknowledged to it, the run that it knew, '1' if it found
 * something missing, '1' to wait no longer, time to live of the ledger. Answers with the generation, or with wait where other nodes have yet to
 * vouch.
 */
export const ADOPT_RUN = script(`${NOW}
local run, node, acknowledged, knownRun, hasLost, isLate, ttl = unpack(ARGV)
local known = redis.call('HMGET', KEYS[1], 'r', 'g', 's:' .. node)
local function enter(number)
  redis.call('HSET', KEYS[1], 's:' .. node, number, 't:' .. node, now)
  redis.call('PEXPIRE', KEYS[1], ttl)
end
local function begin()
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'r', run, 'g', run)
  enter(acknowledged)
  return run
end
if not known[1] or not known[2] then return begin() end
local isBehind = hasLost == '1' or tonumber(known[3] or 0) < tonumber(acknowledged)
if known[1] == run then
  -- A node that the others did not know of when they agreed on this run.
  if isBehind and knownRun ~= run and knownRun ~= '' and known[2] ~= run then return begin() end
  enter(math.max(tonumber(known[3] or 0), tonumber(acknowledged)))
  return known[2]
end
if isBehind or isLate == '1' then return begin() end
-- A node to which no write was acknowledged agrees, but is no witness.
local isWitness = tonumber(acknowledged) > 0
if isWitness or known[3] then redis.call('HSET', KEYS[1], 'v:' .. node, isWitness and run or run .. '-') end
local ledger = {}
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do ledger[fields[at]] = fields[at + 1] end
local nodes, witnesses = {}, 0
for field in pairs(ledger) do
  local other = string.match(field, '^s:(.*)')
  if other then
    local vouchedFor = ledger['v:' .. other]
    if vouchedFor == run then witnesses = witnesses + 1 elseif vouchedFor ~= run .. '-' then return 'wait' end
    table.insert(nodes, other)
  end
end
-- Nobody is left who could know of a loss.
if witnesses == 0 then return begin() end
redis.call('HSET', KEYS[1], 'r', run)
for _, other in ipairs(nodes) do redis.call('HSET', KEYS[1], 't:' .. other, now) end
if not known[3] then enter(acknowledged) end
return known[2]
`)

// Commands to all nodes stand in a log as well as in a message, so that a node that did not hear the message applies them
// later. The log is a stream numbered from 1 and a hash: e (the log's id), n (last number), b (bytes in the stream). Nodes are
// a sorted set of node to the time when its lease ends.

/**
 * Keys: log, stream, nodes, topic. Arguments: command, id of a log to begin, command that publishes, end of the topic's name, how many
 * commands and bytes are kept, time to live of the stream and of the log. Answers with the live nodes.
 */
export const LOG_COMMAND = script(`${NOW}
local body, newLog, publish, topicEnd, maxCount, maxBytes, streamTtl, logTtl = unpack(ARGV)
local log = redis.call('HMGET', KEYS[1], 'e', 'n', 'b')
local id, number, bytes = log[1], tonumber(log[2] or 0), tonumber(log[3] or 0)
if not id then
  id, number = newLog, 0
  redis.call('DEL', KEYS[2])
end
if redis.call('EXISTS', KEYS[2]) == 0 then bytes = 0 end
number, bytes = number + 1, bytes + #body
redis.call('XADD', KEYS[2], number .. '-0', 'c', body, 't', now)
local length = redis.call('XLEN', KEYS[2])
while length > 1 and (bytes > tonumber(maxBytes) or length > tonumber(maxCount)) do
  local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', KEYS[2], oldest[1])
  length, bytes = length - 1, bytes - #oldest[2][2]
end
redis.call('HSET', KEYS[1], 'e', id, 'n', number, 'b', bytes)
redis.call('PEXPIRE', KEYS[2], streamTtl)
redis.call('PEXPIRE', KEYS[1], logTtl)
redis.call(publish, KEYS[4] .. topicEnd, body)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
return redis.call('ZRANGE', KEYS[3], 0, -1)
`)

/**
 * Renews the lease of a node, and reads what it has not read yet. Keys: log, stream, nodes. Arguments: node, lease, how many at most,
 * then id and last number of the logs that the node has read. Answers with the time, the log's id ('' where there is none), its
 * last number, the number that the reading began behind, the entries, the live nodes.
 */
export const READ_COMMANDS = script(`${NOW}
redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
redis.call('PEXPIRE', KEYS[3], ARGV[2])
local nodes = redis.call('ZRANGE', KEYS[3], 0, -1)
local log = redis.call('HMGET', KEYS[1], 'e', 'n')
if not log[1] then return { now, '', 0, 0, {}, nodes } end
local top, from = tonumber(log[2]), 0
for at = 4, #ARGV, 2 do
  if ARGV[at] == log[1] then from = tonumber(ARGV[at + 1]) end
end
-- A Redis that came back with an older file.
if from > top then from = 0 end
return { now, log[1], top, from, redis.call('XRANGE', KEYS[2], from + 1, '+', 'COUNT', ARGV[3]), nodes }
`)

/**
 * Keys: the connections of a user, with the times when their leases end. Arguments: lease, limit or '' for none, connection. Answers with the
 * connections that fill the limit; with none where this one is counted.
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

export const SCRIPTS: readonly Script[] = [
  FIND_ROLLBACK,
  BEAT,
  ADOPT_RUN,
  USER_CONNECTION_ADD,
  LOG_COMMAND,
  READ_COMMANDS,
  PUBLISH_WITH_HISTORY,
  PUBLISH_TO_MANY,
  PUBLISH_IDEMPOTENT,
  READ,
  PRESENCE_ADD,
  PRESENCE_REMOVE,
  PRESENCE_READ,
  PRESENCE_COUNT
]
