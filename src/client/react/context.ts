import { createContext, createElement, type ReactElement, type ReactNode, useContext, useMemo } from 'react'
import type { ApiCaller } from '../api/caller.js'
import type { Client } from '../client.js'
import { type SessionState, SIGNED_OUT } from '../session/session-state.js'
import type { AnyClient } from '../stores/client-stores.js'

interface Provided {
  readonly client: Client<unknown>
  readonly serverSession: SessionState
}

const Context = createContext<Provided | null>(null)

export interface GatehouseProviderProps {
  readonly client: AnyClient
  /** The session that the server has rendered, for hydration. Signed out by default. */
  readonly serverSession?: SessionState
  readonly children?: ReactNode
}

/** Gives the client to the components below. It does not close the client. */
export const GatehouseProvider = ({
  client,
  serverSession = SIGNED_OUT,
  children
}: GatehouseProviderProps): ReactElement => {
  // The types of its channels are those of the caller of a hook.
  const provided = useMemo(() => ({ client: client as Client<unknown>, serverSession }), [client, serverSession])
  return createElement(Context.Provider, { value: provided }, children)
}

export const useProvided = (): Provided => {
  const provided = useContext(Context)
  if (provided === null) throw new Error('a component that uses Gatehouse must be inside a GatehouseProvider')
  return provided
}

/** The client of the provider. The type argument is that of its `api`. */
export const useClient = <Api = ApiCaller>(): Client<Api> =>
  // The context has one type for all clients.
  useProvided().client as Client<Api>
