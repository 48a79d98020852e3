import { invalid } from '../errors.js'
import { about, list, oneRow, rows } from '../queries.js'
import { checkSettingVersion } from '../record-version.js'
import { transmitters } from '../resources.js'
import { type Handlers, handler, type Run } from '../route.js'
import { changeSetting, readSetting, readVersionedSetting } from '../settings.js'
import type { Fields } from '../world.js'

const DEVICE = 'id AS device_id, name, entity_type, battery_level, battery_state AS severity'

const SEVERITIES = ['critical', 'low', 'warning', 'good']

const STATS = `SELECT count(*)::int AS total, round(avg(battery_level))::int AS average,
    ${SEVERITIES.map((name) => `count(*) FILTER (WHERE battery_state = '${name}')::int AS ${name}`).join(', ')}
  FROM transmitters_shown WHERE battery_level IS NOT NULL`

const DISTRIBUTION = `SELECT least(floor(battery_level / 10), 9)::int * 10 AS "from", count(*)::int AS devices
  FROM transmitters WHERE battery_level IS NOT NULL GROUP BY 1 ORDER BY 1`

const ALERTS = `SELECT ${DEVICE} FROM transmitters_shown WHERE battery_state <> 'good' ORDER BY battery_level, id`

const readings = { from: 'battery_readings', fields: ['deviceId', 'at'], order: 'at' }

const thresholds: Run = (call) => readVersionedSetting(call, 'battery')

const ORDER = ['critical', 'low', 'warning']

/** Stores the thresholds. Each must be at least as high as the more urgent ones; those that are not set do not count. */
const storeThresholds: Run = async (call) => {
  await checkSettingVersion(call, 'battery')
  const merged: Fields = { ...(await readSetting(call, 'battery')), ...call.body }
  const set = ORDER.filter((name) => typeof merged[name] === 'number')
  for (const [index, name] of set.entries()) {
    const lower = set[index - 1]
    if (lower !== undefined && Number(merged[name]) < Number(merged[lower]))
      throw invalid([{ path: `/${name}`, message: `must not be below the ${lower} level` }])
  }
  call.subjects.push('battery thresholds')
  return changeSetting(call, 'battery', call.body)
}

export const batteryRoutes: Handlers = {
  'GET /api/battery/stats': handler('battery.read', async (call) => {
    const [stats] = await call.database.rows(STATS)
    return { ...stats, distribution: await call.database.rows(DISTRIBUTION) }
  }),
  'GET /api/battery/alerts': handler('battery.read', rows(ALERTS)),
  'GET /api/battery/thresholds': handler('battery.read', thresholds),
  'PUT /api/battery/thresholds': handler('battery.update', storeThresholds),
  'GET /api/battery/device/:deviceId': handler(
    'battery.read',
    oneRow(transmitters.noun, `SELECT ${DEVICE} FROM transmitters_shown WHERE id = $1`, 'deviceId')
  ),
  'GET /api/battery/history/:deviceId': handler('battery.read', about(transmitters, list(readings)))
}
