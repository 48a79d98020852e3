import { type Static, Type } from '@sinclair/typebox'
import { email, flag, label, MAX_PROPERTIES, maybe, text, texts } from './field-kinds.js'
import { id } from './ids.js'

const address = email('The e-mail address, with which the person signs in.')

const details = {
  username: maybe(text('The name of the account, where accounts have names.')),
  displayName: maybe(text('The name to show.')),
  name: maybe(text('The name of the person.')),
  firstName: maybe(text('The given name.')),
  lastName: maybe(text('The family name.')),
  phone: maybe(text('A telephone number.', 64)),
  role: maybe(text('The role of the account.', 64)),
  roleId: maybe(id('The id of the role.')),
  departmentId: maybe(id('The department that the person belongs to.')),
  permissions: maybe(texts('Permissions beyond those of the role.', 1000)),
  password: Type.Optional(label('A first password.', 1024)),
  isActive: maybe(flag('Whether the account may be used.')),
  mustChangePassword: maybe(flag('Whether the next sign-in asks for a new password.'))
}

export const UserCreateSchema = Type.Object(
  { email: address, ...details },
  {
    $id: 'UserCreate',
    title: 'New user',
    description: 'An account to create.',
    examples: [
      { email: 'ada@example.com', displayName: 'Ada Example', role: 'operator', password: 'a-first-password' }
    ],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type UserCreate = Static<typeof UserCreateSchema>

export const UserUpdateSchema = Type.Object(
  { email: Type.Optional(address), ...details },
  {
    $id: 'UserUpdate',
    title: 'Changed user',
    description: 'What changes about an account.',
    examples: [{ role: 'admin', isActive: true }],
    additionalProperties: true,
    minProperties: 1,
    maxProperties: MAX_PROPERTIES
  }
)
export type UserUpdate = Static<typeof UserUpdateSchema>

export const PasswordResetSchema = Type.Object(
  {
    newPassword: Type.Optional(
      Type.String({ minLength: 8, maxLength: 1024, description: 'The new password; without it the backend makes one.' })
    ),
    mustChange: Type.Optional(flag('Whether the next sign-in asks for another one.')),
    notify: Type.Optional(flag('Whether the person gets a message about it.'))
  },
  {
    $id: 'PasswordReset',
    title: 'Password reset',
    description: 'How to reset the password of an account.',
    examples: [{ newPassword: 'a-new-password', mustChange: true, notify: true }, {}],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type PasswordReset = Static<typeof PasswordResetSchema>
