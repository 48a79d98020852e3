import type { Context } from '../core/context.js'
import type { Fleet } from '../core/fleet.js'
import { forEachInSlices } from '../core/slices.js'
import { byText, searchTest } from './channel-rows.js'
import type { ConnectionRow, ConnectionSort } from './contract.js'
import { waitingBytes } from './figures.js'
import { rowsOfAll } from './listing.js'

export const nodeConnections = async ({ roster }: Context, node: string, search: string): Promise<ConnectionRow[]> => {
  const fits = searchTest(search)
  const rows: ConnectionRow[] = []
  // A copy: the list itself is shuffled whenever one goes.
  await forEachInSlices([...roster.all], (connection) => {
    const { client, user, state, since, sink, outbox, subscriptions } = connection
    const { address, transport } = sink
    if (state !== 'live' || !(fits(user) || fits(address) || fits(client))) return
    rows.push({
      client,
      user,
      address,
      transport,
      node,
      since,
      channels: subscriptions.size,
      queuedBytes: waitingBytes(connection),
      isBehind: outbox.isBehind
    })
  })
  return rows
}

export const allConnections = async (fleet: Fleet, search: string): Promise<readonly ConnectionRow[]> =>
  (await rowsOfAll(fleet, 'adminConnections', search)).flat()

const ORDERS: Readonly<Record<ConnectionSort, (left: ConnectionRow, right: ConnectionRow) => number>> = {
  user: (left, right) => byText(left.user, right.user),
  address: (left, right) => byText(left.address, right.address),
  since: (left, right) => left.since - right.since,
  transport: (left, right) => byText(left.transport, right.transport),
  queuedBytes: (left, right) => left.queuedBytes - right.queuedBytes
}

export const CONNECTION_SORTS = Object.keys(ORDERS) as ConnectionSort[]

export const connectionOrder =
  (sort: ConnectionSort) =>
  (left: ConnectionRow, right: ConnectionRow): number =>
    ORDERS[sort](left, right) || byText(left.client, right.client)
