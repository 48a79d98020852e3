import type { Account } from '../auth/accounts.js'
import { authenticated, isPublic, orChangingPassword } from '../auth/permissions.js'
import { sessionLifetimeSeconds } from '../auth/session-lifetime.js'
import type { TokenFormat } from '../auth/tokens.js'
import type { Backend } from '../backend.js'
import { invalid, Refusal } from '../errors.js'
import { type Call, callerOf, type Handlers, handler } from '../route.js'

const LOGINS_PER_MINUTE = 60

/** The exchange opens a session without a password, so it is for the gateway on this machine alone. */
const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

export const authRoutes = ({ database, accounts, tokens, audit }: Backend): Handlers => {
  const signIn = async ({ body, request }: Call): Promise<Account> => {
    if (body.okta === true) {
      // The peer itself, not whom it speaks for.
      if (!LOOPBACK.test(request.socket.remoteAddress ?? '')) throw new Refusal(403, 'FORBIDDEN', 'Not from here.')
      return accounts.exchange(String(body.email))
    }
    const login = body.email ?? body.username
    if (typeof login !== 'string') throw invalid('/email', 'is required')
    return accounts.signIn(login, String(body.password))
  }

  const login = (format: TokenFormat) => async (call: Call) => {
    const { request, body } = call
    const entry = { action: 'auth.login', ip: request.ip, method: request.method, path: request.url }
    const details = { login: String(body.email ?? body.username ?? '').slice(0, 254) }
    try {
      const account = await signIn(call)
      await audit.add({ ...entry, result: 'done', caller: account, details })
      return tokens.session(account, format, await sessionLifetimeSeconds(database, body.rememberMe === true))
    } catch (error) {
      await audit.add({ ...entry, result: 'failed', caller: null, details })
      throw error
    }
  }

  const me = async (call: Call) => {
    const { permissions, ...user } = callerOf(call)
    return { ...user, permissions: [...permissions] }
  }

  return {
    'POST /api/auth/login': handler(isPublic, login('jwt'), { perMinute: LOGINS_PER_MINUTE }),
    // Older clients sign in here, and get the format that they know.
    'POST /api/auth/backend-login': handler(isPublic, login('legacy'), { perMinute: LOGINS_PER_MINUTE }),
    'GET /api/auth/backend-me': handler(orChangingPassword(authenticated), me),
    // The session is the token, which the gateway has just thrown away: nothing is left to do, whoever asks.
    'POST /api/auth/logout': handler(isPublic, async () => null)
  }
}
