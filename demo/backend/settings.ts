import { putRow } from './records.js'
import type { Fields, World } from './world.js'

/** What weather of each severity does. */
const WEATHER = { enabled: true, showBanner: true, notifyByEmail: false, triggerEmergency: false }

/** What is kept in the table `settings`, and what it is until somebody changes it. */
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

/** Without a value, back to what it was at first. */
export const writeSetting = (world: World, name: string, value: Fields = DEFAULTS[name] ?? {}): Promise<void> =>
  putRow(world, 'settings', { name, value: JSON.stringify(value), updatedAt: world.now() }, 'name')

/** Adds to what is kept, or to the default, in one statement: of changes that come together, none is lost. */
export const changeSetting = async ({ database, now }: World, name: string, changes: Fields): Promise<unknown> => {
  const [kept] = await database.rows(
    `INSERT INTO settings (name, value, updated_at) VALUES ($1, $2::jsonb || $3::jsonb, $4)
     ON CONFLICT (name) DO UPDATE SET value = settings.value || $3::jsonb, updated_at = $4 RETURNING value`,
    [name, JSON.stringify(DEFAULTS[name] ?? {}), JSON.stringify(changes), now()]
  )
  return kept?.value
}
