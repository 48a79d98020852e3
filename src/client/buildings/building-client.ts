import { type Client, type ClientOptions, createClient } from '../client.js'
import type { ChannelSchemas, NoChannels } from '../realtime/channels.js'
import { createBuildingApi } from './api/building-api.js'
import type { Api } from './api/operations.js'
import { Positions, type PositionsOptions } from './positions.js'

export interface BuildingClientOptions<Schemas extends ChannelSchemas = NoChannels>
  extends Omit<ClientOptions<Api, Schemas>, 'routes'> {
  readonly positions?: Omit<PositionsOptions, 'clock'>
}

export interface BuildingClient<Schemas extends ChannelSchemas = NoChannels> extends Client<Api, Schemas> {
  /** The live positions of the watched floors. */
  readonly positions: Positions
}

/** A client with the functions of the built-in API and the live positions of a building. */
export const createBuildingClient = <Schemas extends ChannelSchemas = NoChannels>({
  positions: given,
  ...options
}: BuildingClientOptions<Schemas> = {}): BuildingClient<Schemas> => {
  const client = createClient({ ...options, routes: createBuildingApi })
  const positions = new Positions(client.realtime, { ...given, ...(options.clock && { clock: options.clock }) })
  return {
    ...client,
    positions,
    close: () => {
      client.close()
      positions.close()
    }
  }
}
