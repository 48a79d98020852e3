import { invalid } from '../errors.js'
import { about, checkVersion, list, oneRow, rows } from '../queries.js'
import { transmitters } from '../resources.js'
import { type Handlers, handler, type Run } from '../route.js'
import { readSetting, storeSetting } from '../settings.js'
import type { Fields } from '../world.js'

const DEVICE = 'id AS device_id, name, entity_type, battery_level, battery_state AS severity'

const STATS = `SELECT count(*)::int AS total, round(avg(battery_level))::int AS average,
    ${['critical', 'low', 'warning', 'good']
      .map((name) => `count(*) FILTER (WHERE battery_state = '${name}')::int AS ${name}`)
      .join(', ')}
  FROM transmitters_shown WHERE battery_level IS NOT NULL`

const ALERTS = `SELECT ${DEVICE} FROM transmitters_shown WHERE battery_state <> 'good' ORDER BY battery_level, id`

/** Calculated: a battery loses one per cent a day. */
const readings = {
  from: `(SELECT id AS device_id, least(100, battery_level + day) AS level, updated_at - day * interval '1 day' AS at
    FROM transmitters CROSS JOIN generate_series(0, 6) AS day)`,
  fields: ['deviceId', 'at'],
  order: 'at'
}

const ORDER = ['critical', 'low', 'warning']

/** Stores the thresholds. Each must be at least as high as the more urgent ones; those that are not set do not count. */
const storeThresholds: Run = async (call) => {
  await checkVersion(call, 'settings', 'battery', 'the settings')
  const merged: Fields = { ...(await readSetting(call, 'battery')), ...call.body }
  const set = ORDER.filter((name) => typeof merged[name] === 'number')
  for (const [index, name] of set.entries()) {
    const lower = set[index - 1]
    if (lower !== undefined && Number(merged[name]) < Number(merged[lower]))
      throw invalid([{ path: `/${name}`, message: `must not be below the ${lower} level` }])
  }
  return storeSetting(call, 'battery', call.body)
}

export const batteryRoutes: Handlers = {
  'GET /api/battery/stats': handler('battery.read', oneRow(null, STATS)),
  'GET /api/battery/alerts': handler('battery.read', rows(ALERTS)),
  'GET /api/battery/thresholds': handler('battery.read', (call) => readSetting(call, 'battery')),
  'PUT /api/battery/thresholds': handler('battery.update', storeThresholds),
  'GET /api/battery/device/:deviceId': handler(
    'battery.read',
    oneRow(transmitters.noun, `SELECT ${DEVICE} FROM transmitters_shown WHERE id = $1`, 'deviceId')
  ),
  'GET /api/battery/history/:deviceId': handler('battery.read', about(transmitters, list(readings)))
}
