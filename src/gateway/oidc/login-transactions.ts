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

// Tabs that may sign in at the same time, and how much room they may take among the headers of a request. Who opens more
// leaves the oldest behind: cookies that pile up keep a browser out.
const MAX_AT_ONCE = 5
const MAX_CHARACTERS = 5 * 1024

const PREFIX = 'oidc_login_'
const HELD = /(?:^|;)[ \t]*((?:__Host-)?oidc_login_[0-9a-z]{1,9}_[A-Za-z0-9_-]{11})=([^;]*)/g

export interface LoginTransactionsOptions {
  readonly sealer: Sealer
  readonly cookies: { readonly secure: boolean }
  readonly now: () => number
}

/** One sealed cookie for each sign-in that is under way, so that tabs do not take each other's. */
export class LoginTransactions {
  readonly #prefix: string
  readonly #options: SerializeOptions
  readonly #sealer: Sealer
  readonly #now: () => number

  constructor({ sealer, cookies, now }: LoginTransactionsOptions) {
    // The prefix keeps neighbouring hosts from planting one, and with it their own sign-in on somebody else. Browsers take
    // it with Secure, and for all paths only.
    this.#prefix = `${cookies.secure ? '__Host-' : ''}${PREFIX}`
    this.#options = { ...cookieOptions(cookies), httpOnly: true }
    this.#sealer = sealer
    this.#now = now
  }

  async begin(request: FastifyRequest, reply: FastifyReply, transaction: LoginTransaction): Promise<void> {
    const startedAt = Math.floor(this.#now() / 1000).toString(36)
    const name = `${this.#prefix}${startedAt}_${tagOf(transaction.state)}`
    const sealed = await this.#sealer.seal({ ...transaction }, LIFETIME_SECONDS)
    this.#makeRoom(request, reply, sealed.length)
    setCookie(reply, name, sealed, { ...this.#options, maxAge: LIFETIME_SECONDS })
  }

  /** Ends the one that this state belongs to. Null where this browser began none such, or ended it before. */
  async finish(request: FastifyRequest, reply: FastifyReply, state: string): Promise<LoginTransaction | null> {
    const tag = `_${tagOf(state)}`
    const name = this.#held(request).find(({ name }) => name.endsWith(tag))?.name
    if (name === undefined) return null
    this.#clear(reply, name)
    const [sealed, another] = cookieValues(request.headers.cookie, name)
    if (sealed === undefined || another !== undefined) return null
    const transaction = (await this.#sealer.open(sealed)) as LoginTransaction | null
    return transaction?.state === state ? transaction : null
  }

  #makeRoom(request: FastifyRequest, reply: FastifyReply, characters: number): void {
    let [count, total] = [1, characters]
    for (const held of this.#held(request).toReversed()) {
      count += 1
      total += held.characters
      if (count > MAX_AT_ONCE || total > MAX_CHARACTERS) this.#clear(reply, held.name)
    }
  }

  /** What this browser holds, the oldest first. */
  #held({ headers }: FastifyRequest): { readonly name: string; readonly characters: number }[] {
    const found = [...(headers.cookie ?? '').matchAll(HELD)]
      .map(([, name = '', value = '']) => ({ name, characters: value.length }))
      .filter(({ name }) => name.startsWith(this.#prefix))
    return found.sort((one, other) => (one.name < other.name ? -1 : 1))
  }

  #clear(reply: FastifyReply, name: string): void {
    setCookie(reply, name, '', { ...this.#options, maxAge: 0 })
  }
}

const tagOf = (state: string): string => createHash('sha256').update(state).digest('base64url').slice(0, 11)
