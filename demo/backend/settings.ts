import { putRow } from './records.js'
import type { Fields, World } from './world.js'

/** The actions for each weather severity. */
const WEATHER = { enabled: true, showBanner: true, notifyByEmail: false, triggerEmergency: false }

/** The entries of the table `settings` and their defaults. */
const DEFAULTS: Readonly<Record<string, Fields>> = {
  ble: { scanIntervalMs: 1000, rssiThreshold: -90, txPower: -59, pathLossExponent: 2.4, minReceivers: 3 },
  alerts: { enabled: true, emailEnabled: true, batteryLow: true, receiverOffline: true, offlineAfterMinutes: 10 },
  general: { organizationName: 'Northgate Campus', language: 'en-GB', timezone: 'Europe/Berlin', units: 'metric' },
  battery: { warning: 40, low: 20, critical: 10, staleAfterHours: 48, notify: true },
  minor: { ...WEATHER, severity: 'minor' },
  moderate: { ...WEATHER, severity: 'moderate' },
  severe: { ...WEATHER, severity: 'severe', notifyByEmail: true },
  extreme: { ...WEATHER, severity: 'extreme', notifyByEmail: true, triggerEmergency: true }
}

export const readSetting = async ({ database }: Pick<World, 'database'>, name: string): Promise<Fields> => {
  const [row] = await database.rows<{ value: Fields }>('SELECT value FROM settings WHERE name = $1', [name])
  return row?.value ?? DEFAULTS[name] ?? {}
}

/** Without a value, resets to the default. */
export const writeSetting = (world: World, name: string, value: Fields = DEFAULTS[name] ?? {}): Promise<void> =>
  putRow(world, 'settings', { name, value: JSON.stringify(value), updatedAt: world.now() }, 'name')

/** Merges into the stored or default value in one statement, so that concurrent changes are not lost. */
export const changeSetting = async ({ database, now }: World, name: string, changes: Fields): Promise<unknown> => {
  const [stored] = await database.rows(
    `INSERT INTO settings (name, value, updated_at) VALUES ($1, $2::jsonb || $3::jsonb, $4)
     ON CONFLICT (name) DO UPDATE SET value = settings.value || $3::jsonb, updated_at = $4 RETURNING value`,
    [name, JSON.stringify(DEFAULTS[name] ?? {}), JSON.stringify(changes), now()]
  )
  return stored?.value
}
