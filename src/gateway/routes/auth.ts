import { ActionNoteSchema } from '../../../schemas/action-note.js'
import { LoginSchema } from '../../../schemas/auth.js'
import { action, get, local, post, type RouteTable } from './declare.js'

export const auth: RouteTable = {
  domain: 'auth',
  about: 'Signing in and out',
  rows: [
    local(post('/api/auth/login', 'Sign in', LoginSchema)),
    local(action('/api/auth/logout', 'Sign out', ActionNoteSchema)),
    local(post('/api/auth/backend-login', 'Sign in at the backend', LoginSchema)),
    get('/api/auth/backend-me', 'Who is signed in, as the backend sees it'),
    local(get('/api/auth/csrf-token', 'A CSRF token, in a cookie and in the answer')),
    local(get('/api/auth/providers', 'Where one can sign in besides here'))
  ]
}
