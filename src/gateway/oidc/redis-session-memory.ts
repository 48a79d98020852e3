import { createHash } from 'node:crypto'
import { RedisLink, type RedisLinkOptions } from '../redis-link.js'
import { keyOf, type SessionName } from './ended-sessions.js'
import { ABSOLUTE_SECONDS, type ProviderSession } from './provider-session.js'
import { RedisEnds } from './redis-ends.js'
import { RedisTurns } from './redis-turns.js'
import type { ProviderTokens } from './relying-party.js'
import type { Sealer } from './sealer.js'
import type { LocalSessionMemory, SessionMemory } from './session-memory.js'

export interface RedisSessionMemoryOptions {
  readonly url: string
  /** Who gave the sessions their names: other providers' are in the same Redis perhaps. */
  readonly realm: string
  /** Does everything while Redis is away. */
  readonly local: LocalSessionMemory
  /** What is in Redis is sealed: it holds tokens. */
  readonly sealer: Sealer
  readonly log: RedisLinkOptions['log']
  readonly now: () => number
}

/** The memory that several gateways share. While Redis is away each has its own, and the log says so once per outage. */
export class RedisSessionMemory implements SessionMemory {
  readonly #link: RedisLink
  readonly #ends: RedisEnds
  readonly #turns: RedisTurns
  readonly #local: LocalSessionMemory
  readonly #sealer: Sealer
  readonly #now: () => number
  readonly #prefix: string

  constructor({ url, realm, local, sealer, log, now }: RedisSessionMemoryOptions) {
    this.#local = local
    this.#sealer = sealer
    this.#now = now
    this.#prefix = `gatehouse:oidc:${createHash('sha256').update(realm).digest('base64url').slice(0, 11)}:`
    this.#link = new RedisLink({
      url,
      log,
      saidWhenAway: 'Redis is away: provider sessions are known to this instance alone',
      saidWhenBack: 'Redis is back: provider sessions are known to all instances'
    })
    this.#ends = new RedisEnds(this.#link, this.#prefix, local.ended, now)
    this.#turns = new RedisTurns(this.#link, this.#prefix, sealer)
  }

  ready(): Promise<void> {
    return this.#ends.ready()
  }

  async keepTokens(sessionId: string, tokens: ProviderTokens): Promise<void> {
    await this.#local.keepTokens(sessionId, tokens)
    const sealed = await this.#sealer.seal({ tokens }, ABSOLUTE_SECONDS)
    await this.#link.orElse((redis) => redis.set(this.#tokensKey(sessionId), sealed, 'EX', ABSOLUTE_SECONDS), null)
  }

  async tokensOf(sessionId: string): Promise<ProviderTokens | null> {
    const sealed = await this.#link.orElse((redis) => redis.get(this.#tokensKey(sessionId)), null)
    const content = sealed === null ? null : await this.#sealer.open(sealed)
    return content === null ? this.#local.tokensOf(sessionId) : (content.tokens as ProviderTokens)
  }

  async end(name: SessionName): Promise<void> {
    await this.#local.end(name)
    const tokens = name.kind === 'id' ? this.#tokensKey(name.value) : null
    await this.#ends.tell({ key: keyOf(name), at: this.#now() }, tokens)
  }

  hasEnded(session: ProviderSession): boolean {
    return this.#local.hasEnded(session)
  }

  knows(name: SessionName): boolean {
    return this.#local.knows(name)
  }

  once<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    return this.#local.once(key, () => this.#turns.once(key, work))
  }

  close(): void {
    this.#ends.close()
    this.#link.close()
    this.#local.close()
  }

  #tokensKey(sessionId: string): string {
    return `${this.#prefix}tokens:${sessionId}`
  }
}
