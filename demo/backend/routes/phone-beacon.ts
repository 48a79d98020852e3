import { randomBytes } from 'node:crypto'
import { notFound } from '../errors.js'
import { oneRow, rows } from '../queries.js'
import { putRow } from '../records.js'
import { type Handlers, handler, type Run } from '../route.js'

const DEFAULT_MINUTES = 60

const ENROLLMENT = `SELECT n.expires_at AS "expiresAt", n.completed_at AS "completedAt", e.first_name AS "firstName",
    n.completed_at IS NULL AND n.expires_at > $2 AS usable
  FROM phone_enrollments n LEFT JOIN personnel e ON e.id = n.personnel_id WHERE n.token = $1`

// One statement, so that a token can be used once however many try.
const COMPLETE = `UPDATE phone_enrollments SET completed_at = $2, platform = $3, device_name = $4, irk = $5
  WHERE token = $1 AND completed_at IS NULL AND expires_at > $2
  RETURNING personnel_id AS "personnelId", completed_at AS "completedAt"`

// Who has a key can follow the telephone anywhere, so only its end is shown.
const ENROLLED = `SELECT n.personnel_id AS "personnelId", e.name, n.platform, n.device_name AS "deviceName",
    right(n.irk, 4) AS "irkEnd", n.completed_at AS "enrolledAt"
  FROM phone_enrollments n LEFT JOIN personnel e ON e.id = n.personnel_id
  WHERE n.completed_at IS NOT NULL ORDER BY n.completed_at DESC`

const text = (value: unknown): string | null => (value == null ? null : String(value))

const invite: Run = async (call) => {
  const { personnelId, transmitterId, email, expiresInMinutes = DEFAULT_MINUTES } = call.body
  const token = randomBytes(16).toString('base64url')
  const expiresAt = new Date(call.now().getTime() + Number(expiresInMinutes ?? DEFAULT_MINUTES) * 60_000)
  const whose = { personnelId: text(personnelId), transmitterId: text(transmitterId), email: text(email) }
  await putRow(call, 'phone_enrollments', { token, ...whose, expiresAt })
  return { token, expiresAt, url: `/enroll/${token}` }
}

const complete: Run = async ({ body: { token, platform, deviceName, irk }, database, now }) => {
  const values = [text(token), now(), text(platform), text(deviceName), text(irk)]
  const [done] = await database.rows(COMPLETE, values)
  if (done === undefined) throw notFound('open onboarding token')
  return done
}

/** Telephones that stand in for a badge. The token that a person was given is all that the telephone has to show. */
export const phoneBeaconRoutes: Handlers = {
  'POST /api/phone-beacon/onboarding-token': handler('phone-beacon.create', invite, { status: 201 }),
  'GET /api/phone-beacon/:token': handler('public', oneRow('onboarding token', ENROLLMENT, 'token', 'now')),
  'POST /api/phone-beacon/complete-enrollment': handler('public', complete),
  'GET /api/phone-beacon/irk-records': handler('phone-beacon.read', rows(ENROLLED))
}
