import { Refusal } from '../errors.js'

// Who may do what. Permissions are `resource.action`; roles are sets of them.

const CRUD = ['read', 'create', 'update', 'delete'] as const

const ACTIONS = {
  admin: ['users'],
  assets: CRUD,
  audit: ['read', 'export'],
  battery: ['read', 'update'],
  beacons: CRUD,
  buildings: CRUD,
  dashboard: ['read'],
  departments: CRUD,
  diagnostics: ['read'],
  emergency: [...CRUD, 'trigger'],
  floors: CRUD,
  gateways: ['read', 'update'],
  personnel: [...CRUD, 'export'],
  'phone-beacon': ['read', 'create'],
  positions: ['read'],
  receivers: CRUD,
  settings: ['read', 'update'],
  transmitters: CRUD,
  weather: ['read', 'update'],
  'zone-types': CRUD,
  zones: CRUD
} as const satisfies Record<string, readonly string[]>

const ALL = Object.entries(ACTIONS).flatMap(([resource, actions]) => actions.map((action) => `${resource}.${action}`))

/** The house itself, its radio and its accounts are the admins'; the people and things in it are the operators'. */
const OPERATED = new Set([
  'assets',
  'beacons',
  'emergency',
  'personnel',
  'phone-beacon',
  'transmitters',
  'weather',
  'zones'
])
const ADMINS_ONLY = new Set(['admin', 'audit', 'settings'])

const resourceOf = (permission: string): string => permission.slice(0, permission.indexOf('.'))
const mayRead = (permission: string): boolean =>
  permission.endsWith('.read') && !ADMINS_ONLY.has(resourceOf(permission)) && permission !== 'phone-beacon.read'

export interface Role {
  readonly id: 'admin' | 'operator' | 'viewer'
  readonly name: string
  readonly description: string
  readonly permissions: readonly string[]
}

export const ROLES: readonly Role[] = [
  { id: 'admin', name: 'Administrator', description: 'Everything, accounts and settings included.', permissions: ALL },
  {
    id: 'operator',
    name: 'Operator',
    description: 'Runs the day: people, things, zones and emergencies.',
    permissions: ALL.filter((permission) => mayRead(permission) || OPERATED.has(resourceOf(permission)))
  },
  { id: 'viewer', name: 'Viewer', description: 'Looks, and changes nothing.', permissions: ALL.filter(mayRead) }
]

/** Somebody who is signed in, as the database has them now. */
export interface Caller {
  readonly userId: string
  readonly email: string
  readonly displayName: string
  readonly role: string | null
  readonly permissions: ReadonlySet<string>
}

/** Decides about one request, before its body is looked at. */
export interface Access {
  /** For the audit log. */
  readonly name: string
  /** Throws a `Refusal`. */
  readonly check: (caller: Caller | null) => void
}

export const isPublic: Access = { name: 'public', check: () => undefined }

const mustBeSignedIn = (caller: Caller | null): Caller => {
  if (caller === null) throw new Refusal(401, 'UNAUTHENTICATED', 'Sign in first.')
  return caller
}

export const authenticated: Access = { name: 'authenticated', check: (caller) => void mustBeSignedIn(caller) }

export const requirePermission = (resource: string, action: string): Access => {
  const permission = `${resource}.${action}`
  // A permission that no role has would be a door that nobody notices to be shut.
  if (!ALL.includes(permission)) throw new RangeError(`there is no permission ${permission}`)
  return {
    name: permission,
    check: (caller) => {
      if (!mustBeSignedIn(caller).permissions.has(permission)) {
        throw new Refusal(403, 'FORBIDDEN', `Your account lacks the permission ${permission}.`)
      }
    }
  }
}
