import { randomBytes } from 'node:crypto'
import { isPublic, requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { oneRow } from '../database/database.js'
import { notFound } from '../errors.js'
import { type Handlers, handler, queryOn } from '../route.js'

const DEFAULT_MINUTES = 60

/** Telephones that stand in for a badge. The token that a person was given is all that the telephone has to show. */
export const phoneBeaconRoutes = ({ database, now }: Backend): Handlers => ({
  'POST /api/phone-beacon/onboarding-token': handler(
    requirePermission('phone-beacon', 'create'),
    async ({ body }) => {
      const token = randomBytes(16).toString('base64url')
      const minutes = typeof body.expiresInMinutes === 'number' ? body.expiresInMinutes : DEFAULT_MINUTES
      const expiresAt = new Date(now().getTime() + minutes * 60_000)
      const text = (value: unknown): string | null => (value === undefined || value === null ? null : String(value))
      await database.rows(
        `INSERT INTO phone_enrollments (token, personnel_id, transmitter_id, email, expires_at) VALUES ($1, $2, $3, $4, $5)`,
        [token, text(body.personnelId), text(body.transmitterId), text(body.email), expiresAt]
      )
      return { token, expiresAt, url: `/enroll/${token}` }
    },
    { status: 201 }
  ),
  'GET /api/phone-beacon/:token': handler(isPublic, async ({ params: { token = '' } }) => {
    const enrollment = await oneRow<{ expiresAt: Date; completedAt: Date | null }>(
      database,
      `SELECT n.expires_at AS "expiresAt", n.completed_at AS "completedAt", e.first_name AS "firstName"
       FROM phone_enrollments n LEFT JOIN personnel e ON e.id = n.personnel_id WHERE n.token = $1`,
      [token]
    )
    if (enrollment === null) throw notFound('onboarding token')
    return { ...enrollment, usable: enrollment.completedAt === null && enrollment.expiresAt > now() }
  }),
  'POST /api/phone-beacon/complete-enrollment': handler(isPublic, async ({ body }) => {
    const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
    // One statement, so that a token can be used once however many try.
    const [done] = await database.rows(
      `UPDATE phone_enrollments SET completed_at = $2, platform = $3, device_name = $4, irk = $5
       WHERE token = $1 AND completed_at IS NULL AND expires_at > $2
       RETURNING personnel_id AS "personnelId", completed_at AS "completedAt"`,
      [text(body.token), now(), text(body.platform), text(body.deviceName), text(body.irk)]
    )
    if (done === undefined) throw notFound('open onboarding token')
    return done
  }),
  // Who has a key can follow the telephone anywhere, so only its end is shown.
  'GET /api/phone-beacon/irk-records': queryOn(database)(
    requirePermission('phone-beacon', 'read'),
    `SELECT n.personnel_id AS "personnelId", e.name, n.platform, n.device_name AS "deviceName",
        right(n.irk, 4) AS "irkEnd", n.completed_at AS "enrolledAt"
      FROM phone_enrollments n LEFT JOIN personnel e ON e.id = n.personnel_id
      WHERE n.completed_at IS NOT NULL ORDER BY n.completed_at DESC`
  )
})
