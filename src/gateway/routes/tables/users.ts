import { ActionNoteSchema } from '../../../../schemas/action-note.js'
import { PasswordResetSchema, UserCreateSchema, UserUpdateSchema } from '../../../../schemas/users.js'
import { action, defineRoutes, del, get, post, put, withOptionalBody } from './declare.js'

export const users = defineRoutes({
  domain: 'users',
  about: 'Accounts and roles',
  rows: [
    get('/api/users', 'List users'),
    post('/api/users', 'Create a user', UserCreateSchema),
    put('/api/users/:id', 'Change a user', UserUpdateSchema),
    del('/api/users/:id', 'Delete a user', ActionNoteSchema),
    withOptionalBody(post('/api/users/:id/reset-password', 'Reset a password', PasswordResetSchema)),
    action('/api/users/:id/unlock', 'Unlock an account', ActionNoteSchema),
    get('/api/users/roles', 'List roles')
  ]
})
