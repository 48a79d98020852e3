import { ApiError } from 'gatehouse-client'
import {
  useCall,
  useClient,
  useConnectionState,
  usePresence,
  useSession,
  useSubscription
} from 'gatehouse-client/react'
import { type FormEvent, useState } from 'react'

interface Order {
  readonly id: number
  readonly title: string
}

export const App = () => (useSession().isSignedIn ? <Orders /> : <SignIn />)

const SignIn = () => {
  const { call } = useClient()
  const [error, setError] = useState('')
  const signIn = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault()
    const body = Object.fromEntries(new FormData(event.currentTarget))
    try {
      await call('POST', '/api/auth/login', { body })
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause
      setError(cause.message)
    }
  }
  return (
    <form onSubmit={signIn}>
      <h1>Sign in</h1>
      <label>
        Email <input name="email" type="email" autoComplete="username" required />
      </label>
      <label>
        Password <input name="password" type="password" autoComplete="current-password" required />
      </label>
      <button type="submit">Sign in</button>
      <p role="alert">{error}</p>
    </form>
  )
}

const Orders = () => {
  const { signOut } = useClient()
  const { user } = useSession()
  const connection = useConnectionState()
  const { data, error, isLoading, reload } = useCall<{ data: Order[] }>('GET', '/api/orders')
  const [shown, setShown] = useState<number | null>(42)
  return (
    <main>
      <h1>Orders</h1>
      <p>
        {user?.displayName}, {connection}{' '}
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>{' '}
        <button type="button" onClick={reload}>
          Reload
        </button>
      </p>
      {isLoading && <p>Loading…</p>}
      {error && <p role="alert">{error.message}</p>}
      <ul>
        {data?.data.map(({ id, title }) => (
          <li key={id}>
            {title}{' '}
            <button type="button" aria-pressed={id === shown} onClick={() => setShown(id === shown ? null : id)}>
              Watch {id}
            </button>
          </li>
        ))}
      </ul>
      {shown !== null && <LiveOrder id={shown} />}
    </main>
  )
}

const LiveOrder = ({ id }: { readonly id: number }) => {
  const channel = `orders:${id}`
  const { data, state, error } = useSubscription<{ packed: number }>(channel)
  const { clients } = usePresence(channel)
  const names = clients.map(({ connInfo }) => (connInfo as { name: string }).name)
  return (
    <section>
      <h2>Order {id}</h2>
      <p>
        Packed: <output>{data?.packed ?? '…'}</output> ({state})
      </p>
      <p id="watchers">Watching: {names.toSorted().join(', ')}</p>
      {error && <p role="alert">{error.message}</p>}
    </section>
  )
}
