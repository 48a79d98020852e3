import type { ApiCaller } from './api/caller.js'
import { type ApiClient, type ApiClientOptions, createApiClient } from './api-client.js'
import type { LiveMap, LiveMapOptions } from './realtime/live-map.js'
import { Realtime, type RealtimeOptions } from './realtime/realtime.js'

export interface ClientOptions<Api = ApiCaller> extends ApiClientOptions<Api> {
  readonly realtime?: Partial<Omit<RealtimeOptions, 'session' | 'clock'>>
}

export interface Client<Api = ApiCaller> extends ApiClient<Api> {
  /** Connects with the first subscription or call. */
  readonly realtime: Realtime
  /** Opens a map channel on the connection of `realtime`. */
  map<Value = unknown>(channel: string, options?: LiveMapOptions): LiveMap<Value>
  /** Closes the connection, ends all subscriptions and stops all timers. */
  close(): void
}

/** Creates the calls, the session and the realtime connection of a web application. */
export const createClient = <Api = ApiCaller>({
  realtime: realtimeOptions,
  ...options
}: ClientOptions<Api> = {}): Client<Api> => {
  const client = createApiClient(options)
  const realtime = new Realtime({
    negotiate: () => client.call('GET', '/api/negotiate'),
    ...realtimeOptions,
    session: client.session,
    ...(options.clock && { clock: options.clock })
  })
  return {
    ...client,
    realtime,
    map: (channel, options) => realtime.map(channel, options),
    signOut: async () => {
      const isLeaving = await client.signOut()
      realtime.endSession()
      return isLeaving
    },
    close: () => {
      realtime.close()
      client.close()
    }
  }
}
