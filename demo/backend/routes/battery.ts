import { notFound } from '../errors.js'
import { about, list } from '../queries.js'
import { transmitters } from '../resources.js'
import { type Handlers, handler } from '../route.js'
import { changeSetting, readSetting } from '../settings.js'
import type { Value, World } from '../world.js'

/** The severity of a level; the placeholders are the three thresholds. */
const SEVERITY = `CASE WHEN battery_level <= $1 THEN 'critical' WHEN battery_level <= $2 THEN 'low'
  WHEN battery_level <= $3 THEN 'warning' ELSE 'good' END`

const DEVICE = `id AS device_id, name, entity_type, battery_level, ${SEVERITY} AS severity`

const SEVERITIES = ['critical', 'low', 'warning', 'good']

const STATS = `SELECT count(*)::int AS total, round(avg(battery_level))::int AS average,
    ${SEVERITIES.map((name) => `count(*) FILTER (WHERE ${SEVERITY} = '${name}')::int AS ${name}`).join(', ')}
  FROM transmitters WHERE battery_level IS NOT NULL`

const DISTRIBUTION = `SELECT least(floor(battery_level / 10), 9)::int * 10 AS "from", count(*)::int AS devices
  FROM transmitters WHERE battery_level IS NOT NULL GROUP BY 1 ORDER BY 1`

const ALERTS = `SELECT ${DEVICE} FROM transmitters WHERE ${SEVERITY} <> 'good' AND battery_level IS NOT NULL
  ORDER BY battery_level, id`

const readings = { from: 'battery_readings', fields: ['deviceId', 'at'], order: 'at' }

const thresholds = (world: World) => readSetting(world, 'battery')

/** Passes the thresholds before all other values. An unset threshold matches no level. */
const graded = async (world: World, sql: string, ...values: Value[]) => {
  const stored = await thresholds(world)
  const limits = SEVERITIES.slice(0, 3).map((name) => Number(stored[name] ?? -1))
  return world.database.rows(sql, [...limits, ...values])
}

export const batteryRoutes: Handlers = {
  'GET /api/battery/stats': handler('battery.read', async (call) => {
    const [stats] = await graded(call, STATS)
    return { ...stats, distribution: await call.database.rows(DISTRIBUTION) }
  }),
  'GET /api/battery/alerts': handler('battery.read', (call) => graded(call, ALERTS)),
  'GET /api/battery/thresholds': handler('battery.read', thresholds),
  'PUT /api/battery/thresholds': handler('battery.update', (call) => changeSetting(call, 'battery', call.body)),
  'GET /api/battery/device/:deviceId': handler('battery.read', async (call) => {
    const [device] = await graded(call, `SELECT ${DEVICE} FROM transmitters WHERE id = $4`, call.params.deviceId ?? '')
    if (device === undefined) throw notFound(transmitters.noun)
    return device
  }),
  'GET /api/battery/history/:deviceId': handler('battery.read', about(transmitters, list(readings)))
}
