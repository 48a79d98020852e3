import type { Session } from '../session/session.js'
import { createStore, type Store } from './store.js'

/** Requests data. The signal aborts the request when its result is not needed any more. */
export type CallRequest<Result> = (options: { readonly signal: AbortSignal }) => Promise<Result>

/** The state of a request for a component. */
export interface CallView<Result> {
  /** The result of the last successful request; null before it. */
  readonly data: Result | null
  /** An `ApiError`, unless the request itself throws another one. Null while the request is repeated successfully. */
  readonly error: Error | null
  readonly isLoading: boolean
}

export interface CallStore<Result> extends Store<CallView<Result>> {
  /** Repeats the request; the data stays until the response. Has no effect while no component uses the store. */
  reload(): void
}

/** Sends a request, and sends it again after a sign-in as another user; null for no request. */
export const callStore = <Result>(
  session: Pick<Session, 'state' | 'onChange'>,
  request: CallRequest<Result> | null
): CallStore<Result> => {
  let load = (): void => undefined
  const initial: CallView<Result> = { data: null, error: null, isLoading: request !== null }
  const store = createStore(initial, (setState) => {
    if (request === null) return () => undefined
    let abort = new AbortController()
    load = () => {
      abort.abort()
      abort = new AbortController()
      const { signal } = abort
      setState({ isLoading: true })
      request({ signal }).then(
        (data) => signal.aborted || setState({ data, error: null, isLoading: false }),
        (error: unknown) => signal.aborted || setState({ error: errorOf(error), isLoading: false })
      )
    }
    let user = userOf(session)
    const stopFollowing = session.onChange(() => {
      if (userOf(session) === user) return
      user = userOf(session)
      // Data of the previous user must not stay.
      setState(initial)
      load()
    })
    load()
    return () => {
      stopFollowing()
      abort.abort()
      load = () => undefined
    }
  })
  return { ...store, reload: () => load() }
}

const errorOf = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))

const userOf = ({ state }: Pick<Session, 'state'>): string | null =>
  state.isSignedIn ? JSON.stringify(state.user?.userId ?? null) : null
