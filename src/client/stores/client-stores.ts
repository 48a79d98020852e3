import type { Client } from '../client.js'
import type { Realtime } from '../realtime/realtime.js'
import type { ConnectionState } from '../realtime/relay-connection.js'
import type { Session } from '../session/session.js'
import type { SessionState } from '../session/session-state.js'
import type { Store } from './store.js'

/** A client with any API and any channels: the bindings have one type for all. */
export type AnyClient = Omit<Client<unknown>, 'realtime' | 'map'> & { readonly realtime: object }

/** The session; `initial` is what a server has rendered. */
export const sessionStore = (session: Session, initial: SessionState): Store<SessionState> => ({
  initial,
  getState: () => session.state,
  subscribe: (listener) => session.onChange(listener)
})

/** The state of the connection to the relay. */
export const connectionStore = (realtime: Realtime): Store<ConnectionState> => ({
  initial: 'offline',
  getState: () => realtime.state,
  subscribe: (listener) => realtime.on('state', listener)
})
