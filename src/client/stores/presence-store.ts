import type { Realtime } from '../realtime/realtime.js'
import { RelayError } from '../realtime/relay-error.js'
import type { ClientInfo, SubscribeOptions } from '../realtime/subscription-events.js'
import { createStore, type Store } from './store.js'

/** The presence in a channel for a component. */
export interface PresenceView {
  /** The connections that are subscribed, this one too; a user may have several. */
  readonly clients: readonly ClientInfo[]
  /** Until the clients are known for the first time. */
  readonly isLoading: boolean
  readonly error: RelayError | null
}

const INITIAL: PresenceView = { clients: [], isLoading: true, error: null }
const NONE: PresenceView = { ...INITIAL, isLoading: false }

/** Follows who is subscribed to a channel; null for none. It subscribes to the channel itself, to receive joins and leaves. */
export const presenceStore = (
  realtime: Realtime,
  channel: string | null,
  options: Omit<SubscribeOptions, 'joinLeave'>
): Store<PresenceView> =>
  createStore(channel === null ? NONE : INITIAL, (setState) => {
    if (channel === null) return () => undefined
    const subscription = realtime.subscribe(channel, { ...options, joinLeave: true })
    const clients = new Map<string, ClientInfo>()
    /** The joins and leaves since the last request, which its reply may not contain. */
    let changes: (() => void)[] = []
    let requests = 0

    const load = async (): Promise<void> => {
      requests += 1
      const request = requests
      changes = []
      try {
        const present = await subscription.presence()
        if (request !== requests) return
        clients.clear()
        for (const info of present) clients.set(info.client, info)
        for (const change of changes) change()
        setState({ clients: [...clients.values()], isLoading: false, error: null })
      } catch (error) {
        if (request === requests) setState({ isLoading: false, error: failureOf(error) })
      }
    }
    const apply = (change: () => void): void => {
      changes.push(change)
      change()
      setState({ clients: [...clients.values()] })
    }
    const forget = (): void => {
      requests += 1
      clients.clear()
      setState(INITIAL)
    }
    const follow = (): void => {
      if (subscription.state === 'subscribed') void load()
      else if (subscription.state === 'unsubscribed') setState({ isLoading: false, error: subscription.error })
    }
    subscription.on('join', (info) => apply(() => clients.set(info.client, info)))
    subscription.on('leave', ({ client }) => apply(() => clients.delete(client)))
    subscription.on('state', follow)
    const stopFollowing = realtime.on('reset', forget)
    follow()
    return () => {
      stopFollowing()
      subscription.unsubscribe()
    }
  })

const failureOf = (error: unknown): RelayError => {
  if (error instanceof RelayError) return error
  throw error
}
