import type { Subscription } from '../core/fan-out/subscription.js'
import type { Relay } from '../core/relay.js'
import type { Client } from '../core/session/client.js'
import { forEachInSlices, TimeSlice } from '../core/time-slice.js'
import type { AdminSurveys, ConnectionQuery } from './admin-surveys.js'
import { waitingBytes } from './client-queue.js'
import type {
  ConnectionDetail,
  ConnectionRow,
  ConnectionSort,
  Page,
  SubscriptionRow,
  SubscriptionSort
} from './contract.js'
import {
  byText,
  comparison,
  FirstRows,
  type ListQuery,
  type PageQuery,
  pageOf,
  type RowList,
  type Sorting,
  searchTest
} from './listing.js'

export const nodeConnections = async (
  relay: Relay,
  node: string,
  { search, channel, user, count, ...order }: ListQuery<ConnectionSort>
): Promise<RowList<ConnectionRow>> => {
  const matches = searchTest(search)
  const first = new FirstRows(comparison(CONNECTION_SORTING, order), count)
  const add = (client: Client): void => {
    if (client.state !== 'live' || (channel !== '' && !client.subscriptions.has(channel))) return
    if (user !== '' && client.user !== user) return
    const row = rowOf(client, node)
    const texts = [row.user, row.address, row.client, `${row.clientName} ${row.clientVersion}`]
    if (texts.some(matches)) first.add(row)
  }
  // A copy, because the order of the list changes when a connection is closed.
  await forEachInSlices([...relay.clients], add, new TimeSlice(relay.clocks.monotonicMs))
  return first.list()
}

const rowOf = (client: Client, node: string): ConnectionRow => ({
  client: client.id,
  user: client.user,
  address: client.transport.address,
  clientName: client.name,
  clientVersion: client.version,
  transport: client.transport.name,
  node,
  since: client.connectedAt,
  channels: client.subscriptions.size,
  queuedBytes: waitingBytes(client),
  isBehind: client.isBehind
})

/** A page of the connections of all nodes. Its rows are among the first ones of each node. */
export const connectionPage = async (
  surveys: AdminSurveys,
  { page, size, ...query }: PageQuery<ConnectionSort>
): Promise<Page<ConnectionRow>> => {
  const lists = await surveys.survey('adminConnectionList', { ...query, count: (page + 1) * size })
  const rows = lists.flatMap(({ result }) => result.rows).sort(comparison(CONNECTION_SORTING, query))
  const total = lists.reduce((sum, { result }) => sum + result.total, 0)
  return pageOf({ rows, total }, { page, size })
}

export const CONNECTION_SORTING: Sorting<ConnectionRow, ConnectionSort> = {
  columns: {
    user: (left, right) => byText(left.user, right.user),
    address: (left, right) => byText(left.address, right.address),
    clientName: (left, right) =>
      byText(left.clientName, right.clientName) || byText(left.clientVersion, right.clientVersion),
    since: (left, right) => left.since - right.since,
    transport: (left, right) => byText(left.transport, right.transport),
    channels: (left, right) => left.channels - right.channels,
    queuedBytes: (left, right) => left.queuedBytes - right.queuedBytes
  },
  defaultColumn: 'user',
  key: ({ client }) => client
}

/** Null if the connection is not at this node. */
export const nodeConnection = (
  relay: Relay,
  node: string,
  { client: id, search, isDescending, ...range }: ConnectionQuery
): ConnectionDetail | null => {
  const client = relay.clients.find((each) => each.id === id && each.state === 'live')
  if (client === undefined) return null
  const matches = searchTest(search)
  const subscriptions = [...client.subscriptions.values()].filter(({ channel }) => matches(channel.name))
  const direction = isDescending ? -1 : 1
  subscriptions.sort((left, right) => direction * byText(left.channel.name, right.channel.name))
  const { rows, ...page }: Page<Subscription> = pageOf({ rows: subscriptions, total: subscriptions.length }, range)
  return {
    ...rowOf(client, node),
    protocol: client.codec.name,
    subscriptions: { ...page, rows: rows.map(subscriptionRow) }
  }
}

const subscriptionRow = (subscription: Subscription): SubscriptionRow => ({
  channel: subscription.channel.name,
  isServerSide: subscription.isServerSide,
  isPositioned: subscription.isPositioned,
  usesDelta: subscription.takesDelta,
  isFiltered: subscription.filter !== null,
  rate: subscription.rate,
  view: subscription.view === null ? null : subscription.view.isLimited ? subscription.view.text : 'everything'
})

export const SUBSCRIPTION_SORTING: Sorting<SubscriptionRow, SubscriptionSort> = {
  columns: { channel: (left, right) => byText(left.channel, right.channel) },
  defaultColumn: 'channel',
  key: ({ channel }) => channel
}

/** Null if no node has the connection, undefined if a node that did not respond may have it. */
export const findConnection = async (
  surveys: AdminSurveys,
  { cluster }: Relay,
  query: ConnectionQuery
): Promise<ConnectionDetail | null | undefined> => {
  const results = await surveys.survey('adminConnection', query)
  const found = results.find(({ result }) => result !== null)?.result
  return found ?? (results.length < cluster.size ? undefined : null)
}
