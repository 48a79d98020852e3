import { getRecord } from '../records.js'
import { emergencies } from '../resources.js'
import { idOf, type Run } from '../route.js'
import type { Fields } from '../world.js'
import { countsOf } from './roll-call.js'

// The report of an emergency or a drill: its events, and when each person was safe.

interface Person extends Fields {
  readonly status: string
  readonly safeAt: Date | null
  /** From the start of the emergency. */
  readonly secondsToSafe: number | null
}

const EVENTS = `SELECT a.at, a.details->>'kind' AS kind, a.details->>'message' AS text,
    coalesce(u.display_name, u.name, a.user_email) AS user_name
  FROM audit_log a LEFT JOIN users u ON u.id = a.user_id
  WHERE a.details->>'emergencyId' = $1 AND a.action LIKE 'emergency.%' AND a.result = 'done' ORDER BY a.at, a.id`

const ROLL = `SELECT r.transmitter_id, r.name, r.kind, r.company, r.department, r.status, r.place,
    r.last_seen_at, r.marked_by, r.safe_at,
    round(extract(epoch FROM r.safe_at - (e.started_at #>> '{}')::timestamptz))::int AS seconds_to_safe
  FROM roll_calls r JOIN emergencies e ON e.id = r.emergency_id WHERE r.emergency_id = $1
  ORDER BY r.status = 'safe', r.safe_at, r.name, r.transmitter_id`

/** Times at which a share of all people was safe, by the last time of each person. */
const MILESTONES = [
  { share: 0.5, text: 'Half of the people are safe' },
  { share: 0.9, text: '90 % of the people are safe' },
  { share: 1, text: 'All people are safe' }
]

const milestonesOf = (people: readonly Person[]): Fields[] => {
  const times = people.flatMap(({ safeAt }) => (safeAt === null ? [] : [safeAt])).sort((a, b) => +a - +b)
  return MILESTONES.flatMap(({ share, text }) => {
    const at = times[Math.ceil(share * people.length) - 1]
    return at === undefined ? [] : [{ at, kind: 'milestone', text, userName: null }]
  })
}

/** Null if nobody was safe. */
const timesOf = (people: readonly Person[]): Fields | null => {
  const sorted = people.flatMap(({ secondsToSafe }) => secondsToSafe ?? []).sort((a, b) => a - b)
  if (sorted.length === 0) return null
  return { first: sorted[0], median: sorted[Math.floor((sorted.length - 1) / 2)], last: sorted.at(-1) }
}

export const report: Run = async (call) => {
  const emergency = await getRecord(call, emergencies, idOf(call))
  const people = await call.database.rows<Person>(ROLL, [idOf(call)])
  const events = await call.database.rows<Fields & { at: Date }>(EVENTS, [idOf(call)])
  const timeline = [...events, ...milestonesOf(people)].sort((one, other) => Number(one.at) - Number(other.at))
  return { emergency, summary: countsOf(people), times: timesOf(people), timeline, people }
}
