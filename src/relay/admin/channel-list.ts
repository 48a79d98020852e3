import { hasHistory, resolveChannel } from '../core/channels.js'
import { type Clocks, wallTimeOf } from '../core/clocks.js'
import { ReplyError } from '../core/codes.js'
import type { ChannelRules } from '../core/options.js'
import type { OpenChannel, Relay } from '../core/relay.js'
import type { Cluster } from '../core/survey.js'
import { forEachInSlices, TimeSlice } from '../core/time-slice.js'
import type { ChannelRow, ChannelSort } from './contract.js'
import { byText, type ListFilter, rowsOfAllNodes, type Sorting, searchTest } from './listing.js'

/** The counts of one node for a channel. A tuple, because lists may have 100,000 of them. */
export type ChannelTotals = readonly [
  name: string,
  subscribers: number,
  publishesPerSecond: number,
  lastPublish: number,
  stored: number
]

/** A channel without subscribers is listed for this time after its last publication. */
const LISTED_AFTER_PUBLISH_MS = 60 * 60 * 1000

export const nodeChannels = async (relay: Relay, search: string): Promise<ChannelTotals[]> => {
  const { openChannels, activity, clocks } = relay
  const matches = searchTest(search)
  const totals: ChannelTotals[] = []
  const add = (name: string, subscribers: number): void => {
    if (matches(name)) totals.push(totalsOf(relay, name, subscribers))
  }
  const addOpen = ({ name, size }: OpenChannel): void => {
    if (size > 0) add(name, size)
  }
  const slice = new TimeSlice(clocks.monotonicMs)
  await forEachInSlices(openChannels.values(), addOpen, slice)
  const addClosed = (name: string): void => {
    if ((openChannels.get(name)?.size ?? 0) === 0) add(name, 0)
  }
  await forEachInSlices(activity.channels.keys(), addClosed, slice)
  return totals
}

/** The counts of this node for one channel. */
export const totalsOf = ({ activity, clocks }: Relay, name: string, subscribers: number): ChannelTotals => {
  const now = clocks.monotonicMs()
  const active = activity.channels.get(name)
  if (active === undefined) return [name, subscribers, 0, 0, 0]
  const rate = Math.round(active.perSecond(now) * 10) / 10
  return [name, subscribers, rate, wallTimeOf(active.lastAt, clocks), active.stored(now)]
}

/** The channels of all nodes. Every publication is counted by one node only, the one that received it. */
export const allChannels = async (
  cluster: Cluster,
  rules: ChannelRules,
  { nowMs, monotonicMs }: Clocks,
  filter: ListFilter
): Promise<readonly ChannelRow[]> => {
  const merged = new Map<string, ChannelTotals>()
  const merge = (one: ChannelTotals): void => {
    const other = merged.get(one[0])
    merged.set(one[0], other === undefined ? one : addTotals(one, other))
  }
  const slice = new TimeSlice(monotonicMs)
  for (const totals of await rowsOfAllNodes(cluster, 'adminChannels', filter))
    await forEachInSlices(totals, merge, slice)
  const now = nowMs()
  const rows: ChannelRow[] = []
  const addIfListed = (totals: ChannelTotals): void => {
    const [, subscribers, , lastPublish] = totals
    if (subscribers > 0 || now - lastPublish < LISTED_AFTER_PUBLISH_MS) rows.push(rowOf(totals, rules))
  }
  await forEachInSlices(merged.values(), addIfListed, slice)
  return rows
}

/** The counts of two nodes for the same channel. */
export const addTotals = (one: ChannelTotals, other: ChannelTotals): ChannelTotals => [
  one[0],
  one[1] + other[1],
  one[2] + other[2],
  Math.max(one[3], other[3]),
  one[4] + other[4]
]

export const rowOf = (
  [name, subscribers, publishesPerSecond, lastPublish, stored]: ChannelTotals,
  rules: ChannelRules
): ChannelRow => {
  const resolved = resolveChannel(name, rules)
  const historySize =
    resolved instanceof ReplyError || !hasHistory(resolved.options) ? null : resolved.options.historySize
  return {
    name,
    subscribers,
    publishesPerSecond,
    lastPublish: lastPublish === 0 ? null : lastPublish,
    historyLength: historySize === null ? null : Math.min(historySize, stored)
  }
}

export const CHANNEL_SORTING: Sorting<ChannelRow, ChannelSort> = {
  columns: {
    name: (left, right) => byText(left.name, right.name),
    subscribers: (left, right) => left.subscribers - right.subscribers,
    publishesPerSecond: (left, right) => left.publishesPerSecond - right.publishesPerSecond,
    lastPublish: (left, right) => (left.lastPublish ?? 0) - (right.lastPublish ?? 0),
    historyLength: (left, right) => (left.historyLength ?? -1) - (right.historyLength ?? -1)
  },
  defaultColumn: 'name',
  key: ({ name }) => name
}
