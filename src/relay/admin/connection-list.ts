import type { Client } from '../core/client.js'
import type { Relay } from '../core/relay.js'
import type { Cluster } from '../core/survey.js'
import { forEachInSlices, TimeSlice } from '../core/time-slice.js'
import type { ConnectionRow, ConnectionSort } from './contract.js'
import { byText, rowsOfAllNodes, type Sorting, searchTest } from './listing.js'

export const nodeConnections = async (relay: Relay, node: string, search: string): Promise<ConnectionRow[]> => {
  const matches = searchTest(search)
  const rows: ConnectionRow[] = []
  const add = (connection: Client): void => {
    const { id: client, user, state, connectedAt: since, subscriptions, waitingBytes, isBehind } = connection
    const { address, name: transport } = connection.transport
    if (state !== 'live' || !(matches(user) || matches(address) || matches(client))) return
    rows.push({
      client,
      user,
      address,
      transport,
      node,
      since,
      channels: subscriptions.size,
      queuedBytes: waitingBytes,
      isBehind
    })
  }
  // A copy, because the order of the list changes when a connection is closed.
  await forEachInSlices([...relay.clients], add, new TimeSlice(relay.clocks.monotonicMs))
  return rows
}

export const allConnections = async (cluster: Cluster, search: string): Promise<readonly ConnectionRow[]> =>
  (await rowsOfAllNodes(cluster, 'adminConnections', search)).flat()

export const CONNECTION_SORTING: Sorting<ConnectionRow, ConnectionSort> = {
  columns: {
    user: (left, right) => byText(left.user, right.user),
    address: (left, right) => byText(left.address, right.address),
    since: (left, right) => left.since - right.since,
    transport: (left, right) => byText(left.transport, right.transport),
    queuedBytes: (left, right) => left.queuedBytes - right.queuedBytes
  },
  defaultColumn: 'user',
  key: ({ client }) => client
}
