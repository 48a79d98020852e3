import { changeMany } from '../bulk.js'
import { crud } from '../crud.js'
import { Refusal } from '../errors.js'
import { together } from '../queries.js'
import { beacons, departments, type Resource, zoneTypes } from '../resources.js'
import { type Handler, type Handlers, handler, idsIn, type Run } from '../route.js'
import { readSetting, writeSetting } from '../settings.js'
import type { Fields } from '../world.js'

/** As every resource; and the list itself takes `{ ids, … }`, to change or delete many. */
const collection = (resource: Resource): Handlers => {
  const { path, onePath, permission } = resource
  const generic = crud(resource)
  const many =
    (action: string): Run =>
    (call) => {
      const { ids: _ids, ...changes } = call.body
      const ids = idsIn(call.body)
      if (ids.length === 0) throw new Refusal(400, 'IDS_REQUIRED', 'Say which ones are meant: { "ids": [ … ] }.')
      return changeMany(call, resource, ids, action, changes)
    }
  return {
    ...generic,
    [`PUT ${path}`]: handler(`${permission}.update`, many('update')),
    [`DELETE ${path}`]: handler(`${permission}.delete`, many('delete')),
    [`POST ${onePath}`]: generic[`PUT ${onePath}`] as Handler
  }
}

const DEFAULTS: Readonly<Record<string, Fields>> = {
  ble: { scanIntervalMs: 1000, rssiThreshold: -90, txPower: -59, pathLossExponent: 2.4, minReceivers: 3 },
  alerts: { enabled: true, emailEnabled: true, batteryLow: true, receiverOffline: true, offlineAfterMinutes: 10 },
  general: { organizationName: 'Northgate Campus', language: 'en-GB', timezone: 'Europe/Berlin', units: 'metric' }
}

const read =
  (group: string): Run =>
  (call) =>
    readSetting(call, `settings/${group}`, DEFAULTS[group] ?? {})

/** PUT replaces a group with what was sent, POST and PATCH change it, DELETE brings the defaults back. */
const change =
  (group: string, sentIn: (body: Fields) => unknown): Run =>
  async (call) => {
    const { method } = call.request
    const kept = method === 'POST' || method === 'PATCH' ? await read(group)(call) : {}
    const sent = method === 'DELETE' ? DEFAULTS[group] : sentIn(call.body)
    return sent == null ? kept : writeSetting(call, `settings/${group}`, Object.assign({}, kept, sent))
  }

const settingsPage = (path: string, readIt: Run, changeIt: Run): Handlers => ({
  [`GET ${path}`]: handler('settings.read', readIt),
  ...Object.fromEntries(
    ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [`${method} ${path}`, handler('settings.update', changeIt)])
  )
})

/** A page for each group, and one for all of them, where a body holds the groups that it changes. */
const settingsPages = (): Handlers => {
  const groups = Object.keys(DEFAULTS)
  const of = (run: (group: string) => Run): Run =>
    together(Object.fromEntries(groups.map((group) => [group, run(group)])))
  return Object.assign(
    settingsPage('/api/mgmt/settings', of(read), async (call) => {
      await of((group) => change(group, (body) => body[group]))(call)
      return of(read)(call)
    }),
    ...groups.map((group) =>
      settingsPage(
        `/api/mgmt/settings/${group}`,
        read(group),
        change(group, (body) => body)
      )
    )
  )
}

/** Beacons, departments and zone types, and the settings of the service. */
export const managementRoutes: Handlers = {
  ...collection(beacons),
  ...collection(departments),
  ...collection(zoneTypes),
  ...settingsPages()
}
