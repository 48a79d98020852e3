import type { Logger } from 'pino'
import { LOGOUT_PATH, type ProviderConfig, type ProviderPaths, providerPaths } from './config.js'
import type { ProviderDiscovery } from './provider-client.js'
import type { ProviderSession } from './provider-session-cookie.js'
import type { ProviderSessionStore } from './provider-session-store.js'

/** A configured provider with its state. Each has a store of its own, so that none can end sessions of another. */
export interface IdentityProvider {
  readonly config: ProviderConfig
  readonly paths: ProviderPaths
  readonly discovery: ProviderDiscovery
  readonly store: ProviderSessionStore
  /** Its lines name the provider, unless it is the only one that the settings permit. */
  readonly log: Logger
}

/** The providers of a gateway, by their ids. */
export class IdentityProviders {
  readonly #byId: ReadonlyMap<string, IdentityProvider>

  constructor(providers: readonly Omit<IdentityProvider, 'paths'>[]) {
    this.#byId = new Map(
      providers.map((provider) => [provider.config.id, { ...provider, paths: providerPaths(provider.config.id) }])
    )
  }

  get all(): readonly IdentityProvider[] {
    return [...this.#byId.values()]
  }

  /** Null if there are several. */
  get only(): IdentityProvider | null {
    const [provider = null, another] = this.#byId.values()
    return another === undefined ? provider : null
  }

  /** The path that signs out at this provider, also a browser that has no session of it. */
  logoutPath({ paths }: IdentityProvider): string {
    return this.only === null ? paths.logout : LOGOUT_PATH
  }

  get(id: unknown): IdentityProvider | null {
    return this.#byId.get(String(id)) ?? null
  }

  /** The provider of a session that `ProviderSessionCookie` has read: it accepts configured providers only. */
  of({ provider: id }: Pick<ProviderSession, 'provider'>): IdentityProvider {
    const provider = this.#byId.get(id)
    if (provider === undefined) throw new Error(`unknown identity provider ${id}`)
    return provider
  }
}
