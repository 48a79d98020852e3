import type { Logger } from 'pino'
import { faultOf } from './provider-fault.js'
import type { RelyingParty } from './relying-party.js'

const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000

/** Providers move their addresses seldom, and then keep the old ones for a while. */
const REFRESH_MS = 60 * 60_000

/**
 * Finds the provider, in the background and for as long as it takes: a gateway starts, and serves everybody who is signed
 * in, while the provider is away. Once found it is looked at again every hour, and what was found before stays until then.
 */
export class ProviderDiscovery {
  readonly #discover: () => Promise<RelyingParty>
  readonly #log: Pick<Logger, 'info' | 'warn'>
  #found: RelyingParty | null = null
  #search: Promise<RelyingParty | null> | null = null
  #timer: NodeJS.Timeout | null = null
  #retryMs = FIRST_RETRY_MS
  #closed = false

  constructor(discover: () => Promise<RelyingParty>, log: Pick<Logger, 'info' | 'warn'>) {
    this.#discover = discover
    this.#log = log
  }

  start(): void {
    void this.#look()
  }

  /** The provider as it is known. Where it is not, it is looked for now, once for all who ask. */
  async current(): Promise<RelyingParty | null> {
    return this.#found ?? (await this.#look())
  }

  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  #look(): Promise<RelyingParty | null> {
    this.#search ??= this.#try().finally(() => {
      this.#search = null
    })
    return this.#search
  }

  async #try(): Promise<RelyingParty | null> {
    try {
      const found = await this.#discover()
      if (this.#found === null) this.#log.info({ issuer: found.issuer }, 'the identity provider is known')
      this.#found = found
      this.#retryMs = FIRST_RETRY_MS
      this.#lookAgainIn(REFRESH_MS)
    } catch (error) {
      const said = this.#found === null ? 'nobody can sign in with it yet' : 'what is known of it stays'
      this.#log.warn({ provider: faultOf(error) }, `the identity provider cannot be found: ${said}`)
      this.#lookAgainIn(this.#retryMs)
      this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS)
    }
    return this.#found
  }

  #lookAgainIn(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    if (!this.#closed) this.#timer = setTimeout(() => void this.#look(), ms).unref()
  }
}
