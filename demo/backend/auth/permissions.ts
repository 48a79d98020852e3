import { Refusal } from '../errors.js'

// Who may do what. Permissions are `resource.action`; roles are sets of them.

const ACTIONS = {
  'assets beacons buildings departments floors receivers transmitters zone-types zones': 'read create update delete',
  emergency: 'read create update delete trigger',
  personnel: 'read create update delete export',
  'battery gateways settings weather': 'read update',
  'dashboard diagnostics positions': 'read',
  'phone-beacon': 'read create',
  audit: 'read export',
  admin: 'users'
}

const ALL = Object.entries(ACTIONS).flatMap(([resources, actions]) =>
  resources.split(' ').flatMap((resource) => actions.split(' ').map((action) => `${resource}.${action}`))
)

/** The house itself, its radio and its accounts are the admins'; the people and things in it are the operators'. */
const OPERATED = /^(assets|beacons|emergency|personnel|phone-beacon|transmitters|weather|zones)\./
/** What lookers-on do not even see. */
const UNSEEN = /^(admin|audit|settings|phone-beacon)\./

const mayRead = (permission: string): boolean => permission.endsWith('.read') && !UNSEEN.test(permission)

export const ROLES = [
  { id: 'admin', name: 'Administrator', description: 'Everything, accounts and settings included.', permissions: ALL },
  {
    id: 'operator',
    name: 'Operator',
    description: 'Runs the day: people, things, zones and emergencies.',
    permissions: ALL.filter((permission) => mayRead(permission) || OPERATED.test(permission))
  },
  { id: 'viewer', name: 'Viewer', description: 'Looks, and changes nothing.', permissions: ALL.filter(mayRead) }
]

/** Somebody who is signed in, as the database has them now. */
export interface Caller {
  readonly userId: string
  readonly email: string
  readonly displayName: string
  readonly role: string | null
  readonly permissions: readonly string[]
  /** Signed in with a password that somebody else chose: there is nothing they may do before they choose their own. */
  readonly mustChangePassword: boolean
}

/** The only permission of somebody who must change their password. It tells the page what to ask for. */
export const CHANGE_PASSWORD = 'password.change'

/** Who may ask: anybody, everybody who is signed in, or who has a permission, as `zones.read`. */
export type May = 'public' | 'authenticated' | `${string}.${string}`

/** Decides about one request, before its body is looked at. Throws a `Refusal`. */
export type Check = (caller: Caller | null) => void

export const passwordChangeRequired = (): Refusal =>
  new Refusal(403, 'PASSWORD_CHANGE_REQUIRED', 'Choose a new password first.')

const mustBeReady = (caller: Caller | null): Caller => {
  if (caller === null) throw new Refusal(401, 'UNAUTHENTICATED', 'Sign in first.')
  if (caller.mustChangePassword) throw passwordChangeRequired()
  return caller
}

export const requirePermission = (resource: string, action: string): Check => {
  const permission = `${resource}.${action}`
  // A permission that no role has would be a door that nobody notices to be shut.
  if (!ALL.includes(permission)) throw new RangeError(`there is no permission ${permission}`)
  return (caller) => {
    if (!mustBeReady(caller).permissions.includes(permission))
      throw new Refusal(403, 'FORBIDDEN', `Your account lacks the permission ${permission}.`)
  }
}

/** `orChangingPassword`: also for those who must change their password before anything else. */
export const checkFor = (may: May, orChangingPassword: boolean): Check => {
  if (may === 'public') return () => undefined
  const [resource = '', action = ''] = may.split('.')
  const check = may === 'authenticated' ? mustBeReady : requirePermission(resource, action)
  return (caller) => (orChangingPassword && caller?.mustChangePassword) || check(caller)
}
