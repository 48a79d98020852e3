import { sessionLifetimeSeconds } from '../auth/tokens.js'
import { crud } from '../crud.js'
import { declared } from '../declared.js'
import { checkVersion, together } from '../queries.js'
import { beacons, departments, zoneTypes } from '../resources.js'
import { type Handlers, handler, type Run } from '../route.js'
import { readSetting, storeSetting } from '../settings.js'
import type { Fields } from '../world.js'

const GROUPS = ['ble', 'alerts', 'general']

const reading =
  (name: string): Run =>
  async (call) => {
    const stored = await readSetting(call, name)
    // Until it is set, the session timeout is the default.
    if (name !== 'general') return stored
    return { ...stored, sessionTimeoutMinutes: (await sessionLifetimeSeconds(call, false)) / 60 }
  }

/**
 * The routes of one settings group, or of all groups with a body by group name. PUT replaces a group, POST and PATCH change
 * it, DELETE resets it to the defaults.
 */
const settingsRoutes = (path: string, group: string | null): Handlers => {
  const groups = group === null ? GROUPS : [group]
  const show: Run =
    group === null ? together(Object.fromEntries(groups.map((name) => [name, reading(name)]))) : reading(group)
  const change: Run = async (call) => {
    const { body, request } = call
    if (group !== null) await checkVersion(call, 'settings', group, 'the settings')
    const how = request.method === 'PUT' ? 'replace' : 'change'
    for (const name of groups) {
      // The schema of the route declares the groups as objects.
      const sent = group === null ? (body[name] as Fields | undefined) : body
      if (request.method === 'DELETE') await storeSetting(call, name, undefined, 'replace')
      else if (sent) await storeSetting(call, name, sent, how)
    }
    return show(call)
  }
  const methods = ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} ${path}`)
  const changes = methods.filter((key) => declared.has(key)).map((key) => [key, handler('settings.update', change)])
  return { [`GET ${path}`]: handler('settings.read', show), ...Object.fromEntries(changes) }
}

/** Beacons, departments and zone types, and the settings of the service. */
export const managementRoutes: Handlers = {
  ...crud(beacons),
  ...crud(departments),
  ...crud(zoneTypes),
  ...settingsRoutes('/api/mgmt/settings', null),
  ...Object.assign({}, ...GROUPS.map((name) => settingsRoutes(`/api/mgmt/settings/${name}`, name)))
}
