import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { oneRow } from '../database/database.js'
import { notFound } from '../errors.js'
import type { Fields } from '../records.js'
import { type Handlers, handler, queryOn } from '../route.js'
import { readSetting, writeSetting } from '../settings.js'

const DEFAULTS = { warning: 40, low: 20, critical: 10, staleAfterHours: 48, notify: true }

/** How grave a level is: the placeholders are the three thresholds. */
const SEVERITY = `CASE WHEN battery_level <= $1 THEN 'critical' WHEN battery_level <= $2 THEN 'low'
  WHEN battery_level <= $3 THEN 'warning' ELSE 'good' END`

const DEVICE = `id AS "deviceId", name, entity_type, battery_level AS "batteryLevel", ${SEVERITY} AS severity`

export const batteryRoutes = ({ database, now }: Backend): Handlers => {
  const read = requirePermission('battery', 'read')
  const query = queryOn(database)
  const thresholds = (): Promise<typeof DEFAULTS> => readSetting(database, 'battery', DEFAULTS)
  const levels = async (): Promise<[number, number, number]> => {
    const { critical, low, warning } = { ...DEFAULTS, ...(await thresholds()) }
    return [critical ?? -1, low ?? -1, warning ?? -1]
  }

  return {
    'GET /api/battery/stats': handler(read, async () => ({
      ...(await oneRow(
        database,
        `SELECT count(*)::int AS total, round(avg(battery_level))::int AS average,
           count(*) FILTER (WHERE ${SEVERITY} = 'critical')::int AS critical,
           count(*) FILTER (WHERE ${SEVERITY} = 'low')::int AS low,
           count(*) FILTER (WHERE ${SEVERITY} = 'warning')::int AS warning,
           count(*) FILTER (WHERE ${SEVERITY} = 'good')::int AS good
         FROM transmitters WHERE battery_level IS NOT NULL`,
        await levels()
      )),
      distribution: await database.rows(`
        SELECT least(floor(battery_level / 10), 9)::int * 10 AS "from", count(*)::int AS devices
        FROM transmitters WHERE battery_level IS NOT NULL GROUP BY 1 ORDER BY 1`)
    })),
    'GET /api/battery/alerts': query(
      read,
      `SELECT ${DEVICE} FROM transmitters WHERE ${SEVERITY} <> 'good' AND battery_level IS NOT NULL
       ORDER BY battery_level, id`,
      levels
    ),
    'GET /api/battery/thresholds': handler(read, thresholds),
    'PUT /api/battery/thresholds': handler(requirePermission('battery', 'update'), async ({ body }) => {
      const changed: Fields = { ...(await thresholds()), ...body }
      await writeSetting(database, 'battery', changed, now())
      return changed
    }),
    'GET /api/battery/device/:deviceId': handler(read, async ({ params: { deviceId = '' } }) => {
      const device = await oneRow(database, `SELECT ${DEVICE} FROM transmitters WHERE id = $4`, [
        ...(await levels()),
        deviceId
      ])
      if (device === null) throw notFound('device')
      return device
    }),
    'GET /api/battery/history/:deviceId': handler(read, async ({ params: { deviceId = '' } }) => {
      const known = await oneRow(database, 'SELECT id FROM transmitters WHERE id = $1', [deviceId])
      if (known === null) throw notFound('device')
      return database.rows('SELECT at, level FROM battery_readings WHERE device_id = $1 ORDER BY at', [deviceId])
    })
  }
}
