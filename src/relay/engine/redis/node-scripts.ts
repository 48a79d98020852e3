import { NOW, script, WRITE_NUMBER } from './lua-script.js'

/**
 * Keys: positions. Arguments: epoch and offset expected for each. Reply: 1 if one is behind or has another epoch. A position at 0
 * in another epoch does not count: a read begins one after a map was cleared.
 */
export const FIND_ROLLBACK = script(`
for at, key in ipairs(KEYS) do
  -- pcall, because the key may have another type.
  local position = redis.pcall('HMGET', key, 'e', 'o')
  local epoch, offset = ARGV[2 * at - 1], tonumber(ARGV[2 * at])
  local stored = tonumber(position[2] or 0)
  if position[1] == epoch and stored < offset then return 1 end
  if position[1] and position[1] ~= epoch and stored > 0 then return 1 end
end
return 0
`)

/** Keys: ledger, topic. Arguments: node, number of this write, lease of a node, TTL of the ledger, publish command, topic suffix. */
export const HEARTBEAT = script(`${NOW}${WRITE_NUMBER}
local node, number, lease, ttl, publish, topicSuffix = unpack(ARGV)
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
redis.call(publish, KEYS[2] .. topicSuffix, '')
`)

/**
 * Confirms a run_id. Keys: ledger. Arguments: run_id, node, the last write number acknowledged to the node, '1' if the node used
 * another server or another run before, '1' if it found a rollback, '1' to stop waiting, TTL of the ledger, the generation that
 * the node knows, the name for a new one. Reply: the generation, or `wait` if other nodes have not confirmed the run_id yet.
 */
export const CONFIRM_RUN = script(`${NOW}
local runId, node, acknowledged, isRestarted, hasRollback, isTimedOut, ttl, knownGeneration, newName = unpack(ARGV)
local known = redis.call('HMGET', KEYS[1], 'r', 'g', 's:' .. node)
local function register(number)
  redis.call('HSET', KEYS[1], 's:' .. node, number, 't:' .. node, now)
  redis.call('PEXPIRE', KEYS[1], ttl)
end
local function newGeneration()
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'r', runId, 'g', newName)
  register(acknowledged)
  return newName
end
if not known[1] or not known[2] then return newGeneration() end
local isBehind = hasRollback == '1' or tonumber(known[3] or 0) < tonumber(acknowledged)
if known[1] == runId then
  -- The other nodes confirmed this run without waiting for this node.
  if isBehind and isRestarted == '1' and known[2] == knownGeneration then return newGeneration() end
  register(math.max(tonumber(known[3] or 0), tonumber(acknowledged)))
  return known[2]
end
if isBehind or isTimedOut == '1' then return newGeneration() end
-- A node without acknowledged writes confirms the run, but cannot know whether writes are missing.
local isWitness = tonumber(acknowledged) > 0
if isWitness or known[3] then redis.call('HSET', KEYS[1], 'v:' .. node, isWitness and runId or runId .. '-') end
local ledger = {}
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do ledger[fields[at]] = fields[at + 1] end
local nodes, witnesses = {}, 0
for field in pairs(ledger) do
  local other = string.match(field, '^s:(.*)')
  if other then
    local confirmed = ledger['v:' .. other]
    if confirmed == runId then witnesses = witnesses + 1 elseif confirmed ~= runId .. '-' then return 'wait' end
    table.insert(nodes, other)
  end
end
-- No node is left that could detect a loss.
if witnesses == 0 then return newGeneration() end
redis.call('HSET', KEYS[1], 'r', runId)
for _, other in ipairs(nodes) do redis.call('HSET', KEYS[1], 't:' .. other, now) end
if not known[3] then register(acknowledged) end
return known[2]
`)

// A command to all nodes is published and also appended to a log, so that a node that missed the message applies it later. The
// log is a stream numbered from 1 and a hash: e (id of the log), n (last number), b (bytes in the stream). The leases of the
// nodes are a sorted set of node to the end of its lease.

/**
 * Keys: log, stream, nodes, topic. Arguments: command, id for a new log, publish command, topic suffix, maximum number and bytes
 * of stored commands, TTL of the stream and of the log. Reply: the nodes with a lease.
 */
export const APPEND_COMMAND = script(`${NOW}
local body, newLog, publish, topicSuffix, maxCount, maxBytes, streamTtl, logTtl = unpack(ARGV)
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
redis.call(publish, KEYS[4] .. topicSuffix, body)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
return redis.call('ZRANGE', KEYS[3], 0, -1)
`)

/**
 * Renews the lease of a node and reads the commands that it has not read yet. Keys: log, stream, nodes. Arguments: node, lease,
 * maximum number of commands, then alternately id and last read number of each log that the node has read. Reply: time, id of the
 * log ('' without a log), its last number, the number after which the entries start, the entries, the nodes with a lease.
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
-- Redis was restarted with an older file.
if from > top then from = 0 end
return { now, log[1], top, from, redis.call('XRANGE', KEYS[2], from + 1, '+', 'COUNT', ARGV[3]), nodes }
`)
