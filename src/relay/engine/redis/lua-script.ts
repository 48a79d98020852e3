import { createHash } from 'node:crypto'

/** A Lua script and its SHA-1 digest, the argument of EVALSHA. */
export interface Script {
  readonly text: string
  readonly sha: string
}

export const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') })

// Times are those of Redis, because the clocks of the nodes may differ.
export const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`

// The ledger of a server is a hash: r (the run_id that the nodes have confirmed), g (generation), s:<node> (number of the node's
// last write), t:<node> (time of its last heartbeat), v:<node> (the run_id that the node has confirmed). A Redis Cluster has no
// ledger, because a script can access one hash slot only: every run_id is a generation there.
export const WRITE_NUMBER = `
-- A script that was not cached is sent again after later ones, so the number must never decrease.
local function writeNumber(ledger, node, number)
  local field = 's:' .. node
  local known = redis.call('HGET', ledger, field)
  if not known or tonumber(known) < tonumber(number) then redis.call('HSET', ledger, field, number) end
end
`

// The generation of a server's data, see publish-scripts.ts. In a Redis Cluster it is the run_id.
export const GENERATION = `
local function generationOf(ledger, runId)
  if not ledger or ledger == '' then return runId end
  local generation = redis.call('HGET', ledger, 'g')
  if generation then return generation end
  redis.call('HSET', ledger, 'r', runId, 'g', runId)
  return runId
end
`
