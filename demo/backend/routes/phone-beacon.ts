import { randomBytes } from 'node:crypto'
import { audit } from '../audit.js'
import { notFound } from '../errors.js'
import { list, oneRow } from '../queries.js'
import { putRow } from '../records.js'
import { type Handlers, handler, type Run } from '../route.js'

const DEFAULT_MINUTES = 60

const ENROLLMENT = `SELECT n.expires_at, n.completed_at, e.first_name, n.completed_at IS NULL AND n.expires_at > $2 AS usable
  FROM phone_enrollments n LEFT JOIN personnel e ON e.id = n.personnel_id WHERE n.token = $1`

// One statement, so that concurrent requests cannot use a token twice.
const COMPLETE = `UPDATE phone_enrollments SET completed_at = $2, platform = $3, device_name = $4, irk = $5
  WHERE token = $1 AND completed_at IS NULL AND expires_at > $2
  RETURNING personnel_id, completed_at`

// A key allows tracking the phone, so only its last characters are returned.
const enrolled = {
  from: `(SELECT n.personnel_id, e.name, n.platform, n.device_name, right(n.irk, 4) AS irk_end, n.completed_at AS enrolled_at
    FROM phone_enrollments n LEFT JOIN personnel e ON e.id = n.personnel_id WHERE n.completed_at IS NOT NULL)`,
  fields: ['personnelId', 'platform', 'enrolledAt'],
  order: 'enrolled_at DESC'
}

const text = (value: unknown): string | null => (value == null ? null : String(value))

const invite: Run = async (call) => {
  const { personnelId, transmitterId, email, expiresInMinutes = DEFAULT_MINUTES } = call.body
  const token = randomBytes(16).toString('base64url')
  const expiresAt = new Date(call.now().getTime() + Number(expiresInMinutes ?? DEFAULT_MINUTES) * 60_000)
  const whose = { personnelId: text(personnelId), transmitterId: text(transmitterId), email: text(email) }
  await putRow(call, 'phone_enrollments', { token, ...whose, expiresAt })
  return { token, expiresAt, url: `/enroll/${token}` }
}

const complete: Run = async (call) => {
  const { token, platform, deviceName, irk } = call.body
  const values = [text(token), call.now(), text(platform), text(deviceName), text(irk)]
  const [done] = await call.database.rows(COMPLETE, values)
  if (done === undefined) throw notFound('open onboarding token')
  await audit(call, 'phone-beacon.enroll', 'done', { personnelId: done.personnelId })
  return done
}

/** Phones that replace a badge. The onboarding token is the phone's only credential. */
export const phoneBeaconRoutes: Handlers = {
  'POST /api/phone-beacon/onboarding-token': handler('phone-beacon.create', invite, { status: 201 }),
  'GET /api/phone-beacon/:token': handler('public', oneRow('onboarding token', ENROLLMENT, 'token', 'now')),
  'POST /api/phone-beacon/complete-enrollment': handler('public', complete),
  'GET /api/phone-beacon/irk-records': handler('phone-beacon.read', list(enrolled))
}
