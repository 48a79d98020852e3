import { type Client, type ClientOptions, createClient } from '../client.js'
import { createBuildingApi } from './api/building-api.js'
import type { Api } from './api/operations.js'
import { Positions, type PositionsOptions } from './positions.js'

export interface BuildingClientOptions extends Omit<ClientOptions<Api>, 'routes'> {
  readonly positions?: Omit<PositionsOptions, 'clock'>
}

export interface BuildingClient extends Client<Api> {
  /** The live positions of the watched floors. */
  readonly positions: Positions
}

/** A client with the functions of the built-in API and the live positions of a building. */
export const createBuildingClient = ({ positions: given, ...options }: BuildingClientOptions = {}): BuildingClient => {
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
