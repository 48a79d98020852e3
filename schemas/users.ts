import { type Static, Type } from '@sinclair/typebox'
import { email, flag, label, MAX_PROPERTIES, maybe, text, texts } from './field-kinds.js'
import { id } from './ids.js'

const address = email('The e-mail address, which is the login name.')

const details = {
  username: maybe(text('The user name of the account, if it has one.')),
  displayName: maybe(text('The name to show.')),
  name: maybe(text('The name of the person.')),
  firstName: maybe(text('The given name.')),
  lastName: maybe(text('The family name.')),
  phone: maybe(text('A phone number.', 64)),
  role: maybe(text('The role of the account.', 64)),
  roleId: maybe(id('The id of the role.')),
  departmentId: maybe(id('The department that the person belongs to.')),
  permissions: maybe(texts('Permissions beyond those of the role.', 1000)),
  password: Type.Optional(label('The initial password.', 1024)),
  isActive: maybe(flag('Whether the account is active.')),
  mustChangePassword: maybe(flag('Whether the password must be changed at the next sign-in.'))
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
    title: 'User update',
    description: 'The fields of an account to change.',
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
      Type.String({
        minLength: 8,
        maxLength: 1024,
        description: 'The new password. If omitted, the backend generates one.'
      })
    ),
    currentPassword: Type.Optional(label('The current password, if users change their own.', 1024)),
    mustChange: Type.Optional(flag('Whether the password must be changed at the next sign-in.')),
    notify: Type.Optional(flag('Whether the person is notified.'))
  },
  {
    $id: 'PasswordReset',
    title: 'Password reset',
    description: 'A password reset.',
    examples: [{ newPassword: 'a-new-password', mustChange: true, notify: true }, {}],
    additionalProperties: true,
    maxProperties: MAX_PROPERTIES
  }
)
export type PasswordReset = Static<typeof PasswordResetSchema>
