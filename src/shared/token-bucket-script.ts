/**
 * Lua script for Redis: takes one token from each bucket, or none if one is empty. A bucket is the time at which it will be full
 * again, by the clock of Redis; a full bucket has no key. ARGV: for each key, the time for one token and for a whole bucket in
 * microseconds. Returns how long each bucket needed to be full before, in microseconds.
 */
export const TAKE_TOKENS = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local waits = {}
local allowed = true
for i, key in ipairs(KEYS) do
  local full = tonumber(redis.call('GET', key) or '0')
  waits[i] = math.max(0, full - now)
  if waits[i] + tonumber(ARGV[2 * i - 1]) > tonumber(ARGV[2 * i]) + 1 then allowed = false end
end
if allowed then
  for i, key in ipairs(KEYS) do
    local after = waits[i] + tonumber(ARGV[2 * i - 1])
    redis.call('SET', key, string.format('%.0f', now + after), 'PX', math.ceil(after / 1000))
  end
end
for i, wait in ipairs(waits) do waits[i] = string.format('%.0f', wait) end
return waits`
