import { type Static, Type } from '@sinclair/typebox'
import { id } from './ids.js'

// The content of the cookies that scripts can read. Details that an account does not have are null.

const permission = () =>
  Type.String({
    minLength: 3,
    maxLength: 128,
    pattern: '^[A-Za-z0-9_*-]+\\.[A-Za-z0-9_*.-]+$'
  })

const detail = (description: string, maxLength: number) =>
  Type.Union([Type.String({ maxLength }), Type.Null()], { description })

export const MAX_DISPLAY_NAME_CHARACTERS = 200

export const AuthUserSchema = Type.Object(
  {
    userId: Type.Union([id('The id of the account.'), Type.Null()], { description: 'The id of the account.' }),
    email: detail('The e-mail address of the account.', 254),
    displayName: detail('The name to show.', MAX_DISPLAY_NAME_CHARACTERS),
    role: detail('The role of the account.', 64)
  },
  {
    $id: 'AuthUser',
    title: 'Signed-in person',
    description: 'The content of the cookie auth_user: the user who is signed in, for display.',
    examples: [
      { userId: 7, email: 'ada@example.com', displayName: 'Ada Example', role: 'admin' },
      { userId: 'u-12', email: null, displayName: null, role: null }
    ],
    additionalProperties: false
  }
)
export type AuthUser = Static<typeof AuthUserSchema>

export const PermissionSchema = Type.String({
  ...permission(),
  $id: 'Permission',
  title: 'Permission',
  description: 'A permission as resource.action.',
  examples: ['emergency.trigger', 'admin.users', 'personnel.read']
})
export type Permission = Static<typeof PermissionSchema>

export const AuthPermissionsSchema = Type.Array(permission(), {
  $id: 'AuthPermissions',
  title: 'Permissions',
  description:
    'The content of the cookie auth_permissions: the permissions of the user, for display. The backend enforces them.',
  examples: [['personnel.read', 'personnel.create', 'emergency.read'], []],
  maxItems: 1000
})
export type AuthPermissions = Static<typeof AuthPermissionsSchema>

export const TokenExpirySchema = Type.Integer({
  $id: 'TokenExpiry',
  title: 'Session expiry',
  description: 'The content of the cookie auth_token_expiry: the end of the session in milliseconds since 1970.',
  examples: [1763200000000],
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER
})
export type TokenExpiry = Static<typeof TokenExpirySchema>
