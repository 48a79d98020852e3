import type { Fields, World } from './world.js'

/** The actions for each weather severity. */
const WEATHER = { enabled: true, showBanner: true, notifyByEmail: false, triggerEmergency: false }

/** The entries of the table `settings` and their defaults. */
const DEFAULTS: Readonly<Record<string, Fields>> = {
  ble: { scanIntervalMs: 1000, rssiThreshold: -90, txPower: -59, pathLossExponent: 2.4, minReceivers: 3 },
  alerts: {
    enabled: true,
    batteryLow: true,
    zoneBreach: true,
    zoneOverCapacity: true,
    receiverOffline: true,
    transmitterSilent: true,
    offlineAfterMinutes: 10,
    silentAfterMinutes: 2
  },
  general: { organizationName: 'Northgate Campus', language: 'en-GB', timezone: 'Europe/Berlin', units: 'metric' },
  battery: { warning: 40, low: 20, critical: 10, staleAfterHours: 48, notify: true },
  minor: { ...WEATHER, severity: 'minor' },
  moderate: { ...WEATHER, severity: 'moderate' },
  severe: { ...WEATHER, severity: 'severe', notifyByEmail: true },
  extreme: { ...WEATHER, severity: 'extreme', notifyByEmail: true, triggerEmergency: true }
}

/** With the number of its changes, which a form sends back. */
export const readSetting = async ({ database }: Pick<World, 'database'>, id: string): Promise<Fields> => {
  const sql = "SELECT value || jsonb_build_object('version', version) AS value FROM settings WHERE id = $1"
  const [row] = await database.rows<{ value: Fields }>(sql, [id])
  return row?.value ?? { version: 0 }
}

/** Stores the defaults. Stored values win, also if they are null. */
export const storeDefaultSettings = async ({ database, now }: World): Promise<void> => {
  await database.rows(
    `INSERT INTO settings (id, value, updated_at) SELECT key, value, $2 FROM jsonb_each($1::jsonb)
     ON CONFLICT (id) DO UPDATE SET value = excluded.value || settings.value`,
    [JSON.stringify(DEFAULTS), now()]
  )
}

/** SQL: a number of the settings; null if it is not set, which matches no comparison. */
export const numberSetting = (id: string, field: string): string =>
  `(SELECT (value->>'${field}')::float FROM settings WHERE id = '${id}')`

/** SQL: whether a flag of the settings is on, as it is unless it is switched off. */
export const isSettingOn = (id: string, field: string): string =>
  `(SELECT (value->>'${field}')::boolean FROM settings WHERE id = '${id}') IS NOT FALSE`

/**
 * Changes the sent fields, or replaces all; without fields, resets to the default. In one statement, so that concurrent
 * changes are not lost.
 */
export const storeSetting = async (
  world: World,
  id: string,
  fields: Fields = DEFAULTS[id] ?? {},
  how: 'change' | 'replace' = 'change'
): Promise<Fields> => {
  const value = how === 'replace' ? 'excluded.value' : 'settings.value || excluded.value'
  await world.database.rows(
    `INSERT INTO settings (id, value, updated_at) VALUES ($1, $2::jsonb, $3)
     ON CONFLICT (id) DO UPDATE SET value = ${value}, updated_at = $3, version = settings.version + 1`,
    [id, JSON.stringify(fields), world.now()]
  )
  return readSetting(world, id)
}
