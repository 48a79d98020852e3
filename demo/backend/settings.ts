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
    silentAfterMinutes: 2,
    cooldownMinutes: 5
  },
  general: { organizationName: 'Northgate Campus', language: 'en-GB', timezone: 'Europe/Berlin', units: 'metric' },
  battery: { warning: 40, low: 20, critical: 10, staleAfterHours: 48, notify: true },
  minor: { ...WEATHER, severity: 'minor' },
  moderate: { ...WEATHER, severity: 'moderate' },
  severe: { ...WEATHER, severity: 'severe', notifyByEmail: true },
  extreme: { ...WEATHER, severity: 'extreme', notifyByEmail: true, triggerEmergency: true }
}

export const readSetting = async ({ database }: Pick<World, 'database'>, name: string): Promise<Fields> => {
  const [row] = await database.rows<{ value: Fields }>('SELECT value FROM settings WHERE name = $1', [name])
  return row?.value ?? {}
}

/** With the number of its changes, for the form. */
export const readVersionedSetting = async ({ database }: Pick<World, 'database'>, name: string): Promise<Fields> => {
  const [row] = await database.rows<{ value: Fields; version: number }>(
    'SELECT value, version FROM settings WHERE name = $1',
    [name]
  )
  return { ...row?.value, version: row?.version ?? 0 }
}

/** Stores the defaults. Stored values win, also if they are null. */
export const storeDefaultSettings = async ({ database, now }: World): Promise<void> => {
  await database.rows(
    `INSERT INTO settings (name, value, updated_at) SELECT key, value, $2 FROM jsonb_each($1::jsonb)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value || settings.value`,
    [JSON.stringify(DEFAULTS), now()]
  )
}

/** SQL: a number of the settings; null if it is not set, which matches no comparison. */
export const numberSetting = (name: string, field: string): string =>
  `(SELECT (value->>'${field}')::float FROM settings WHERE name = '${name}')`

/** SQL: whether a flag of the settings is on, as it is unless it is switched off. */
export const isSettingOn = (name: string, field: string): string =>
  `(SELECT (value->>'${field}')::boolean FROM settings WHERE name = '${name}') IS NOT FALSE`

/** Without a value, resets to the default. */
export const writeSetting = async (
  { database, now }: World,
  name: string,
  value: Fields = DEFAULTS[name] ?? {}
): Promise<void> => {
  await database.rows(
    `INSERT INTO settings (name, value, updated_at) VALUES ($1, $2::jsonb, $3)
     ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = $3, version = settings.version + 1`,
    [name, JSON.stringify(value), now()]
  )
}

/** Merges into the stored value in one statement, so that concurrent changes are not lost. Returns it with its version. */
export const changeSetting = async ({ database, now }: World, name: string, changes: Fields): Promise<Fields> => {
  const [stored] = await database.rows<{ value: Fields; version: number }>(
    `UPDATE settings SET value = value || $2::jsonb, updated_at = $3, version = version + 1 WHERE name = $1
     RETURNING value, version`,
    [name, JSON.stringify(changes), now()]
  )
  return { ...stored?.value, ...(stored && { version: stored.version }) }
}
