import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { ProviderExchange } from './exchange.js'
import { identityOf } from './identity.js'
import type { LoginTransaction, LoginTransactions } from './login-transactions.js'
import { type Page, sendPage } from './page.js'
import { backendAwayPage, faultPage, identityPage, noAccountPage, strayPage } from './pages.js'
import type { ProviderDiscovery } from './provider-discovery.js'
import { faultOf, providerFaultOf } from './provider-fault.js'
import type { ProviderSessions } from './provider-session.js'
import { queryOf } from './query.js'
import type { Granted } from './relying-party.js'
import { returnPath } from './return-to.js'
import type { SessionMemory } from './session-memory.js'

export interface SignInParts {
  readonly log: Logger
  readonly discovery: ProviderDiscovery
  readonly transactions: LoginTransactions
  readonly sessions: ProviderSessions
  readonly memory: SessionMemory
  readonly exchange: ProviderExchange
  readonly groupsClaim: string
}

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** Sends the browser to the provider. */
export const loginHandler =
  ({ discovery, transactions }: SignInParts): Handler =>
  async (request, reply) => {
    const returnTo = returnPath(queryOf(request).get('returnTo'))
    const provider = await discovery.current()
    if (provider === null) return sendPage(reply, faultPage('away', returnTo))
    const { url, transaction } = await provider.begin(returnTo)
    await transactions.begin(request, reply, transaction)
    return redirect(reply, url.href)
  }

/** Takes the browser back. Ends at the place that was wanted, or on a page that says why not: never at the provider again. */
export const callbackHandler = (parts: SignInParts): Handler => {
  const { log, discovery, transactions } = parts

  return async (request, reply) => {
    const transaction = await transactionOf(request, reply, transactions)
    if (transaction === null) {
      log.warn({ requestId: request.id }, 'a callback belongs to no sign-in of this browser')
      return sendPage(reply, strayPage())
    }
    const provider = await discovery.current()
    if (provider === null) return sendPage(reply, faultPage('away', transaction.returnTo))
    let granted: Granted
    try {
      granted = await provider.finish(queryOf(request).toString(), transaction)
    } catch (error) {
      const fault = providerFaultOf(error)
      log.warn({ requestId: request.id, fault, provider: faultOf(error) }, 'a sign-in failed')
      return sendPage(reply, faultPage(fault, transaction.returnTo))
    }
    const page = await startSessions(parts, request, reply, granted, transaction.returnTo)
    return page === null ? redirect(reply, transaction.returnTo) : sendPage(reply, page)
  }
}

const transactionOf = async (
  request: FastifyRequest,
  reply: FastifyReply,
  transactions: LoginTransactions
): Promise<LoginTransaction | null> => {
  const [state, another] = queryOf(request).getAll('state')
  return state === undefined || another !== undefined ? null : transactions.finish(request, reply, state)
}

/** Null where somebody is signed in now; else what they are told. */
const startSessions = async (
  { log, sessions, memory, exchange, groupsClaim }: SignInParts,
  request: FastifyRequest,
  reply: FastifyReply,
  { claims, tokens }: Granted,
  returnTo: string
): Promise<Page | null> => {
  const requestId = request.id
  const { identity, fault, groupsCut } = identityOf(claims, groupsClaim)
  if (identity === null) {
    log.warn(
      { requestId, fault, claims: Object.keys(claims) },
      'the provider vouches for nobody who could have an account'
    )
    return identityPage(fault ?? 'no-subject')
  }
  if (groupsCut > 0) log.warn({ requestId, subject: identity.subject, groupsCut }, 'groups do not fit into the session')

  const session = await sessions.start(reply, identity)
  await memory.keepTokens(session.id, tokens)

  // At once, because who has no account should be told so; any later request would do it too.
  const { kind } = await exchange.run(request, reply, session)
  if (kind === 'no-account') return noAccountPage(identity.email)
  return kind === 'no-answer' ? backendAwayPage(returnTo) : null
}

const redirect = (reply: FastifyReply, address: string): FastifyReply =>
  reply.header('cache-control', 'no-store').redirect(address, 303)
