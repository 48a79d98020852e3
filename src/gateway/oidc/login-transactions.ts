import { createHash } from 'node:crypto'
import type { SerializeOptions } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookieOptions, cookieValues, setCookie } from '../session/cookies.js'
import type { Sealer } from './sealer.js'

/** What a browser must bring back from the provider, or what it brings back is not an answer to us. */
export interface LoginTransaction {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly returnTo: string
}

/** Long enough to find a phone and a second factor. */
const LIFETIME_SECONDS = 10 * 60

/** Tabs that may sign in at the same time. Who opens more leaves the oldest behind: cookies must not pile up. */
const MAX_AT_ONCE = 5

const PREFIX = 'oidc_login_'
const NAMES = /(?:^|;)\s*(oidc_login_[0-9a-z]{1,9}_[A-Za-z0-9_-]{11})=/g

export interface LoginTransactionsOptions {
  readonly sealer: Sealer
  readonly cookies: { readonly secure: boolean }
  readonly now: () => number
}

/** One sealed cookie for each sign-in that is under way, so that tabs do not take each other's. */
export class LoginTransactions {
  readonly #options: SerializeOptions
  readonly #sealer: Sealer
  readonly #now: () => number

  constructor({ sealer, cookies, now }: LoginTransactionsOptions) {
    this.#options = { ...cookieOptions(cookies), path: '/auth/oidc', httpOnly: true }
    this.#sealer = sealer
    this.#now = now
  }

  async begin(request: FastifyRequest, reply: FastifyReply, transaction: LoginTransaction): Promise<void> {
    const held = namesIn(request)
    for (const name of held.slice(0, Math.max(0, held.length + 1 - MAX_AT_ONCE))) this.#clear(reply, name)
    const startedAt = Math.floor(this.#now() / 1000).toString(36)
    const sealed = await this.#sealer.seal({ ...transaction }, LIFETIME_SECONDS)
    setCookie(reply, `${PREFIX}${startedAt}_${tagOf(transaction.state)}`, sealed, {
      ...this.#options,
      maxAge: LIFETIME_SECONDS
    })
  }

  /** Ends the one that this state belongs to. Null where this browser began none such, or ended it before. */
  async finish(request: FastifyRequest, reply: FastifyReply, state: string): Promise<LoginTransaction | null> {
    const name = namesIn(request).find((held) => held.endsWith(`_${tagOf(state)}`))
    if (name === undefined) return null
    this.#clear(reply, name)
    const [sealed, another] = cookieValues(request.headers.cookie, name)
    if (sealed === undefined || another !== undefined) return null
    const transaction = (await this.#sealer.open(sealed)) as LoginTransaction | null
    return transaction?.state === state ? transaction : null
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}

/** The oldest first. */
const namesIn = ({ headers }: FastifyRequest): string[] =>
  [...new Set([...(headers.cookie ?? '').matchAll(NAMES)].map(([, name]) => name as string))].sort()

const tagOf = (state: string): string => createHash('sha256').update(state).digest('base64url').slice(0, 11)
