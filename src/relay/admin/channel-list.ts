import { isObject } from '../../shared/is-object.js'
import { hasHistory, type ResolvedChannel, resolveChannel } from '../core/channels.js'
import { type Clocks, wallTimeOf } from '../core/clocks.js'
import { ReplyError } from '../core/codes.js'
import type { ChannelRules } from '../core/options.js'
import type { Relay } from '../core/relay.js'
import type { Cluster } from '../core/survey.js'
import { forEachInSlices, TimeSlice } from '../core/time-slice.js'
import type { ChannelDetail, ChannelRow, ChannelSort, RateCount } from './contract.js'
import { byText, rowsOfAllNodes, type Sorting, searchTest } from './listing.js'
import { livePublication } from './live.js'

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
  const now = clocks.monotonicMs()
  const totals: ChannelTotals[] = []
  const add = (name: string, subscribers: number): void => {
    if (!matches(name)) return
    const active = activity.channels.get(name)
    const rate = active === undefined ? 0 : Math.round(active.perSecond(now) * 10) / 10
    const lastPublish = active === undefined ? 0 : wallTimeOf(active.lastAt, clocks)
    totals.push([name, subscribers, rate, lastPublish, active?.stored(now) ?? 0])
  }
  const slice = new TimeSlice(clocks.monotonicMs)
  await forEachInSlices(openChannels.values(), ({ name, size }) => add(name, size), slice)
  const addClosed = (name: string): void => {
    if (!openChannels.has(name)) add(name, 0)
  }
  await forEachInSlices(activity.channels.keys(), addClosed, slice)
  return totals
}

/** The channels of all nodes. Every publication is counted by one node only, the one that received it. */
export const allChannels = async (
  cluster: Cluster,
  rules: ChannelRules,
  { nowMs, monotonicMs }: Clocks,
  search: string
): Promise<readonly ChannelRow[]> => {
  const merged = new Map<string, ChannelTotals>()
  const merge = (one: ChannelTotals): void => {
    const other = merged.get(one[0])
    merged.set(one[0], other === undefined ? one : sum(one, other))
  }
  const slice = new TimeSlice(monotonicMs)
  for (const totals of await rowsOfAllNodes(cluster, 'adminChannels', search))
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

const sum = (one: ChannelTotals, other: ChannelTotals): ChannelTotals => [
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

/** Subscribers of a channel at this node with a limited rate. */
export const nodeRates = ({ openChannels }: Relay, name: string): readonly RateCount[] =>
  [...(openChannels.get(name)?.limited ?? [])].map(([rate, subscribers]) => ({ rate, subscribers }))

/** The same for all nodes, highest rate first. */
const allRates = async (cluster: Cluster, name: string): Promise<readonly RateCount[]> => {
  const counts = new Map<number, number>()
  for (const { result } of await cluster.survey('adminChannelRates', name))
    for (const { rate, subscribers } of result) counts.set(rate, (counts.get(rate) ?? 0) + subscribers)
  return [...counts].map(([rate, subscribers]) => ({ rate, subscribers })).sort((left, right) => right.rate - left.rate)
}

const MAX_PUBLICATIONS = 50
const MAX_PRESENCE = 1000

/** The counts of all nodes and the engine's data of one channel. */
export const channelDetail = async (relay: Relay, name: string, resolved: ResolvedChannel): Promise<ChannelDetail> => {
  const { cluster, channelRules: channels, clocks } = relay
  const [rows, limited, content] = await Promise.all([
    allChannels(cluster, channels, clocks, name),
    allRates(cluster, name),
    relay.readChannel(name, resolved, MAX_PUBLICATIONS)
  ])
  const publications = content.publications.map((publication) => livePublication(name, publication))
  const row = rows.find((each) => each.name === name) ?? rowOf([name, 0, 0, 0, 0], channels)
  return {
    ...row,
    // Publications from before the start of the relay are not counted.
    lastPublish: row.lastPublish ?? publications[0]?.time ?? null,
    historyLength: row.historyLength === null ? null : historyLength(row.historyLength, publications.length),
    namespace: resolved.namespace,
    limited,
    schema: resolved.options.schema,
    publications,
    presence: content.presence === null ? null : presenceRows(content.presence)
  }
}

/** The exact length if the complete history was read, else the counted length. */
const historyLength = (counted: number, read: number): number =>
  read < MAX_PUBLICATIONS ? read : Math.max(counted, read)

const presenceRows = (presence: ReadonlyMap<string, string>): ChannelDetail['presence'] =>
  [...presence].slice(0, MAX_PRESENCE).map(([client, info]) => ({ client, user: userOf(info) }))

const userOf = (info: string): string => {
  const parsed: unknown = JSON.parse(info)
  return isObject(parsed) && typeof parsed.user === 'string' ? parsed.user : ''
}
