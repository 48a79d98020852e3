import { ownTables } from '../routes/index.js'

/** Paths under `/api` that the gateway serves besides its tables, some of them outside production only. */
const OTHER_OWN_PATHS = ['/api/dev-login', '/api/dev-user', '/api/ble/scan', '/api/ble/status']

const OWN_PATHS: ReadonlySet<string> = new Set<string>([
  ...ownTables.flatMap(({ rows }) => rows.map(({ path }) => path)),
  ...OTHER_OWN_PATHS
])

/** Whether the gateway itself serves a path or another spelling of it. */
export const isOwnPath = (template: string): boolean => {
  const path = template.toLowerCase().replace(/\/$/, '')
  return OWN_PATHS.has(path) || /^\/api\/(?:docs|dev-login)(?:\/|$)/.test(path)
}
