import { type App, type InjectionKey, inject, provide } from 'vue'
import type { ApiCaller } from '../api/caller.js'
import type { Client } from '../client.js'
import type { SessionState } from '../session/session-state.js'
import type { AnyClient } from '../stores/client-stores.js'

interface Provided {
  readonly client: Client<unknown>
  readonly serverSession: SessionState | null
}

const KEY: InjectionKey<Provided> = Symbol('gatehouse-client')

export interface ProvideClientOptions {
  /** Provides the client to the whole app instead of to the components below the current one. */
  readonly app?: Pick<App, 'provide'>
  /** The session that the server has rendered, for hydration; otherwise the session of the client. */
  readonly serverSession?: SessionState
}

/** Gives the client to components. It does not close the client. */
export const provideClient = (client: AnyClient, { app, serverSession }: ProvideClientOptions = {}): void => {
  // The types of its channels are those of the caller of a composable.
  const provided: Provided = { client: client as Client<unknown>, serverSession: serverSession ?? null }
  if (app === undefined) provide(KEY, provided)
  else app.provide(KEY, provided)
}

export const useProvided = (): Provided => {
  const provided = inject(KEY, null)
  if (provided === null) throw new Error('there is no client: call provideClient with the app or in a parent component')
  return provided
}

/** The provided client. The type argument is that of its `api`. */
export const useClient = <Api = ApiCaller>(): Client<Api> =>
  // The key has one type for all clients.
  useProvided().client as Client<Api>
