import { requirePermission } from '../auth/permissions.js'
import type { Backend } from '../backend.js'
import { changeMany } from '../bulk.js'
import { crud } from '../crud.js'
import { Refusal } from '../errors.js'
import { type Fields, Records } from '../records.js'
import { beacons, departments, type Resource, zoneTypes } from '../resources.js'
import { type Call, type Handler, type Handlers, handler, idsIn } from '../route.js'
import { readSetting, writeSetting } from '../settings.js'

const DEFAULTS = {
  ble: { scanIntervalMs: 1000, rssiThreshold: -90, txPower: -59, pathLossExponent: 2.4, minReceivers: 3 },
  alerts: { enabled: true, emailEnabled: true, batteryLow: true, receiverOffline: true, offlineAfterMinutes: 10 },
  general: { organizationName: 'Northgate Campus', language: 'en-GB', timezone: 'Europe/Berlin', units: 'metric' }
} as const satisfies Record<string, Fields>

type Group = keyof typeof DEFAULTS
const GROUPS = Object.keys(DEFAULTS) as Group[]

/** Beacons, departments and zone types, and the settings of the service. */
export const managementRoutes = (backend: Backend): Handlers => ({
  ...collection('/api/mgmt/beacons', beacons, backend),
  ...collection('/api/mgmt/departments', departments, backend),
  ...collection('/api/mgmt/zone-types', zoneTypes, backend),
  ...settings(backend)
})

/** As every resource; and the list itself takes `{ ids, … }`, to change or delete many. */
const collection = (path: `/api/mgmt/${string}`, resource: Resource, backend: Backend): Handlers => {
  const generic = crud(path, resource, backend)
  const records = new Records(resource, backend)
  const changeOne = generic[`PUT ${path}/:id`] as Handler
  const many =
    (action: string) =>
    async ({ body }: Call) => {
      const { ids, ...changes } = body
      if (idsIn(body).length === 0)
        throw new Refusal(400, 'IDS_REQUIRED', 'Say which ones are meant: { "ids": [ … ] }.')
      return changeMany(backend.database, records, { ids, action, changes })
    }
  return {
    ...generic,
    [`PUT ${path}`]: handler(requirePermission(resource.permission, 'update'), many('update')),
    [`DELETE ${path}`]: handler(requirePermission(resource.permission, 'delete'), many('delete')),
    [`POST ${path}/:id`]: changeOne
  }
}

const settings = ({ database, now }: Backend): Handlers => {
  const readGroup = (group: Group): Promise<Fields> =>
    readSetting<Fields>(database, `settings/${group}`, DEFAULTS[group])
  const readAll = async (): Promise<Fields> =>
    Object.fromEntries(await Promise.all(GROUPS.map(async (group) => [group, await readGroup(group)])))
  const write = (group: Group, value: Fields) => writeSetting(database, `settings/${group}`, value, now())

  /** What each method makes of a group: PUT replaces it, POST and PATCH change it, DELETE brings the defaults back. */
  const outcome = async (method: string, group: Group, sent: Fields): Promise<Fields> => {
    if (method === 'DELETE') return DEFAULTS[group]
    return method === 'PUT' ? sent : { ...(await readGroup(group)), ...sent }
  }

  const page = (
    path: `/api/mgmt/settings${string}`,
    groups: readonly Group[],
    sentFor: SentFor,
    read: () => Promise<Fields>
  ) => {
    const change = handler(requirePermission('settings', 'update'), async ({ body, request: { method } }) => {
      for (const group of groups) {
        const sent = sentFor(body, group)
        if (sent !== null || method === 'DELETE') await write(group, await outcome(method, group, sent ?? {}))
      }
      return read()
    })
    return {
      [`GET ${path}`]: handler(requirePermission('settings', 'read'), read),
      ...Object.fromEntries(['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [`${method} ${path}`, change]))
    }
  }

  return {
    ...page('/api/mgmt/settings', GROUPS, (body, group) => (body[group] as Fields | null | undefined) ?? null, readAll),
    ...Object.assign(
      {},
      ...GROUPS.map((group) =>
        page(
          `/api/mgmt/settings/${group}`,
          [group],
          (body) => body,
          () => readGroup(group)
        )
      )
    )
  }
}

type SentFor = (body: Fields, group: Group) => Fields | null
