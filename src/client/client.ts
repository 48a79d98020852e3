import type { ApiCaller } from './api/caller.js'
import { type ApiClient, type ApiClientOptions, createApiClient } from './api-client.js'
import type { ChannelSchemas, NoChannels } from './realtime/channels.js'
import type { LiveMap, LiveMapOptions } from './realtime/live-map.js'
import { type AnyRealtime, Realtime, type RealtimeOptions } from './realtime/realtime.js'

export interface ClientOptions<Api = ApiCaller, Schemas extends ChannelSchemas = NoChannels>
  extends ApiClientOptions<Api> {
  readonly realtime?: Partial<Omit<RealtimeOptions<Schemas>, 'session' | 'clock'>>
}

export interface Client<Api = ApiCaller, Schemas extends ChannelSchemas = NoChannels> extends ApiClient<Api> {
  /** Connects with the first subscription or call. */
  readonly realtime: Realtime<Schemas>
  /** Opens a map channel on the connection of `realtime`. */
  readonly map: Realtime<Schemas>['map']
  /** Closes the connection, ends all subscriptions and stops all timers. */
  close(): void
}

/** A client with any functions and any declared channels. */
export interface AnyClient extends ApiClient<unknown> {
  readonly realtime: AnyRealtime
  map(channel: string, options?: LiveMapOptions): LiveMap
}

/** Creates the calls, the session and the realtime connection of a web application. */
export const createClient = <Api = ApiCaller, Schemas extends ChannelSchemas = NoChannels>({
  realtime: realtimeOptions,
  ...options
}: ClientOptions<Api, Schemas> = {}): Client<Api, Schemas> => {
  const client = createApiClient(options)
  const realtime = new Realtime<Schemas>({
    negotiate: () => client.call('GET', '/api/negotiate'),
    ...realtimeOptions,
    session: client.session,
    ...(options.clock && { clock: options.clock })
  })
  return {
    ...client,
    realtime,
    map: (channel, options) => realtime.map(channel, options),
    close: () => {
      realtime.close()
      client.close()
    }
  }
}
