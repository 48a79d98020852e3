import { audit } from '../audit.js'
import { type Account, exchange, signIn } from '../auth/accounts.js'
import { authenticated, isPublic, orChangingPassword } from '../auth/permissions.js'
import { sessionLifetimeSeconds } from '../auth/session-lifetime.js'
import { invalid, Refusal } from '../errors.js'
import { type Call, callerOf, type Handlers, handler, type Run } from '../route.js'

const OFTEN = { perMinute: 60 }

/** The exchange opens a session without a password, so it is for the gateway on this machine alone. */
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

const accountOf = async (call: Call): Promise<Account> => {
  const { email, username, password, okta } = call.body
  if (okta === true) {
    // The peer itself, not whom it speaks for.
    if (!LOOPBACK.test(call.request.socket.remoteAddress ?? '')) throw new Refusal(403, 'FORBIDDEN', 'Not from here.')
    return exchange(call, String(email))
  }
  const login = email ?? username
  if (typeof login !== 'string') throw invalid('/email', 'is required')
  return signIn(call, login, String(password))
}

const login =
  (format: 'jwt' | 'legacy'): Run =>
  async (call) => {
    const { email, username, rememberMe } = call.body
    const details = { login: String(email ?? username ?? '').slice(0, 254) }
    try {
      const account = await accountOf(call)
      await audit({ ...call, caller: account }, 'auth.login', 'done', details)
      return call.tokens.session(account, format, await sessionLifetimeSeconds(call, rememberMe === true))
    } catch (error) {
      await audit({ ...call, caller: null }, 'auth.login', 'failed', details)
      throw error
    }
  }

export const authRoutes: Handlers = {
  'POST /api/auth/login': handler(isPublic, login('jwt'), OFTEN),
  // Older clients sign in here, and get the format that they know.
  'POST /api/auth/backend-login': handler(isPublic, login('legacy'), OFTEN),
  'GET /api/auth/backend-me': handler(orChangingPassword(authenticated), callerOf),
  // The session is the token, which the gateway has just thrown away: nothing is left to do, whoever asks.
  'POST /api/auth/logout': handler(isPublic, () => null)
}
