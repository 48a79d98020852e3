import { crud } from '../crud.js'
import { together } from '../queries.js'
import { beacons, departments, zoneTypes } from '../resources.js'
import { type Handlers, handler, type Run } from '../route.js'
import { changeSetting, readSetting, writeSetting } from '../settings.js'
import type { Fields } from '../world.js'

const DEFAULTS: Readonly<Record<string, Fields>> = {
  ble: { scanIntervalMs: 1000, rssiThreshold: -90, txPower: -59, pathLossExponent: 2.4, minReceivers: 3 },
  alerts: { enabled: true, emailEnabled: true, batteryLow: true, receiverOffline: true, offlineAfterMinutes: 10 },
  general: { organizationName: 'Northgate Campus', language: 'en-GB', timezone: 'Europe/Berlin', units: 'metric' }
}

const GROUPS = Object.keys(DEFAULTS)

const read =
  (group: string): Run =>
  (call) =>
    readSetting(call, `settings/${group}`, DEFAULTS[group] ?? {})

/**
 * A page for a group, or for all of them: then a body holds the groups that it changes. PUT replaces a group with what was
 * sent, POST and PATCH change it, DELETE brings the defaults back.
 */
const settingsPage = (path: string, groups: readonly string[], show: Run): Handlers => {
  const change: Run = async (call) => {
    const { body, request } = call
    const isAdded = request.method === 'POST' || request.method === 'PATCH'
    for (const group of groups) {
      const { [group]: usual = {} } = DEFAULTS
      const sent = request.method === 'DELETE' ? usual : groups === GROUPS ? (body[group] as Fields | undefined) : body
      if (sent && isAdded) await changeSetting(call, `settings/${group}`, usual, sent)
      else if (sent) await writeSetting(call, `settings/${group}`, sent)
    }
    return show(call)
  }
  const methods = ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} ${path}`)
  const changes = methods.map((key) => [key, handler('settings.update', change)])
  return { [`GET ${path}`]: handler('settings.read', show), ...Object.fromEntries(changes) }
}

/** Beacons, departments and zone types, and the settings of the service. */
export const managementRoutes: Handlers = {
  ...crud(beacons),
  ...crud(departments),
  ...crud(zoneTypes),
  ...settingsPage('/api/mgmt/settings', GROUPS, together(Object.fromEntries(GROUPS.map((name) => [name, read(name)])))),
  ...Object.assign({}, ...GROUPS.map((name) => settingsPage(`/api/mgmt/settings/${name}`, [name], read(name))))
}
