import { HttpError } from '../errors.js'

// Permissions are `resource.action`; roles are sets of permissions.

const ACTIONS = {
  'beacons buildings departments floors receivers transmitters zone-types zones': 'read create update delete',
  emergency: 'read create update delete trigger',
  'assets personnel': 'read create update delete export',
  'alerts battery gateways settings weather': 'read update',
  'dashboard diagnostics positions': 'read',
  'phone-beacon': 'read create',
  audit: 'read export',
  admin: 'users'
}

/** All permissions. */
export const ALL_PERMISSIONS = Object.entries(ACTIONS).flatMap(([resources, actions]) =>
  resources.split(' ').flatMap((resource) => actions.split(' ').map((action) => `${resource}.${action}`))
)

/** Admins manage the site, its radio and its accounts; operators manage people and assets. */
const OPERATED = /^(alerts|assets|beacons|emergency|personnel|phone-beacon|transmitters|weather|zones)\./
/** Resources hidden from viewers. */
const UNSEEN = /^(admin|audit|settings|phone-beacon)\./

const mayRead = (permission: string): boolean => permission.endsWith('.read') && !UNSEEN.test(permission)

export const ROLES = [
  {
    id: 'admin',
    name: 'Administrator',
    description: 'Everything, accounts and settings included.',
    permissions: ALL_PERMISSIONS
  },
  {
    id: 'operator',
    name: 'Operator',
    description: 'Runs the day: people, things, zones and emergencies.',
    permissions: ALL_PERMISSIONS.filter((permission) => mayRead(permission) || OPERATED.test(permission))
  },
  {
    id: 'viewer',
    name: 'Viewer',
    description: 'Looks, and changes nothing.',
    permissions: ALL_PERMISSIONS.filter(mayRead)
  }
]

/** The signed-in user, as stored in the database. */
export interface Caller {
  readonly userId: string
  readonly email: string
  readonly displayName: string
  readonly role: string | null
  readonly permissions: readonly string[]
  /** Signed in with a password set by an administrator: the user must change it first. */
  readonly mustChangePassword: boolean
}

/** The only permission of a user who must change the password. The page then shows the form. */
export const CHANGE_PASSWORD = 'password.change'

/** Access to a route: public, any signed-in user, or a permission such as `zones.read`. */
export type May = 'public' | 'authenticated' | `${string}.${string}`

/** Throws if the caller may not use a route. `orChangingPassword`: it is also for users who must change their password. */
export const checkAccess = (may: May, caller: Caller | null, orChangingPassword = false): void => {
  if (may === 'public') return
  if (caller === null) throw new HttpError(401, 'UNAUTHENTICATED', 'Sign in first.')
  if (caller.mustChangePassword) {
    if (orChangingPassword) return
    throw new HttpError(403, 'PASSWORD_CHANGE_REQUIRED', 'Choose a new password first.')
  }
  if (may !== 'authenticated' && !caller.permissions.includes(may))
    throw new HttpError(403, 'FORBIDDEN', `Your account lacks the permission ${may}.`)
}
