import { hasHistory, resolveChannel } from '../core/channel-names.js'
import { wallTimeOf } from '../core/clocks.js'
import { ReplyError } from '../core/codes.js'
import type { OpenChannel } from '../core/fan-out/hub.js'
import type { ChannelRules } from '../core/options.js'
import type { Relay } from '../core/relay.js'
import { forEachInSlices, TimeSlice } from '../core/time-slice.js'
import type { AdminSurveys } from './admin-surveys.js'
import {
  type ChannelKind,
  type ChannelRow,
  type ChannelSort,
  MAX_LIST_ROWS,
  type Page,
  type RateCount,
  type ViewCount
} from './contract.js'
import { ifAvailable } from './if-available.js'
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

/** A channel without subscribers is listed for this time after its last publication. */
const LISTED_AFTER_PUBLISH_MS = 60 * 60 * 1000

export const nodeChannels = async (relay: Relay, query: ListQuery<ChannelSort>): Promise<RowList<ChannelRow>> => {
  const { openChannels, activity, clocks } = relay
  const matches = searchTest(query.search)
  const first = new FirstRows(comparison(CHANNEL_SORTING, query), query.count)
  const isMeant = kindTest(relay, query.kind)
  const add = (name: string): void => {
    if (matches(name) && isMeant(name)) first.add(nodeChannel(relay, name))
  }
  const addOpen = ({ name, size }: OpenChannel): void => {
    if (size > 0) add(name)
  }
  const slice = new TimeSlice(clocks.monotonicMs)
  await forEachInSlices(openChannels.values(), addOpen, slice)
  const listedFrom = clocks.monotonicMs() - LISTED_AFTER_PUBLISH_MS
  const addClosed = (name: string): void => {
    const lastAt = activity.channels.get(name)?.lastAt ?? Number.NEGATIVE_INFINITY
    if (lastAt > listedFrom && (openChannels.get(name)?.size ?? 0) === 0) add(name)
  }
  await forEachInSlices(activity.channels.keys(), addClosed, slice)
  return first.list()
}

const kindTest = ({ openChannels, channelRules }: Relay, kind: ChannelKind): ((name: string) => boolean) => {
  if (kind === 'view') return (name) => (openChannels.get(name)?.viewCounts ?? null) !== null
  return kind === 'map' ? (name) => isMap(name, channelRules) : () => true
}

const isMap = (name: string, rules: ChannelRules): boolean => {
  const resolved = resolveChannel(name, rules)
  return !(resolved instanceof ReplyError) && resolved.options.map !== null
}

/** One channel at this node. Every publication is counted by one node only, the one that received it. */
export const nodeChannel = ({ openChannels, activity, clocks, channelRules }: Relay, name: string): ChannelRow => {
  const now = clocks.monotonicMs()
  const active = activity.channels.get(name)
  return {
    name,
    subscribers: openChannels.get(name)?.size ?? 0,
    publishesPerSecond: active === undefined ? 0 : Math.round(active.perSecond(now) * 10) / 10,
    lastPublish: active === undefined ? null : wallTimeOf(active.lastAt, clocks),
    historyLength: lengthIfStored(name, active?.stored(now) ?? 0, channelRules),
    limited: rateCounts(openChannels.get(name)?.limited ?? []),
    keys: null,
    views: openChannels.get(name)?.viewCounts ?? null
  }
}

/** Highest rate first. */
const rateCounts = (byRate: Iterable<readonly [rate: number, subscribers: number]>): readonly RateCount[] =>
  [...byRate].map(([rate, subscribers]) => ({ rate, subscribers })).sort((left, right) => right.rate - left.rate)

/** Null if the namespace has no history. */
const lengthIfStored = (name: string, stored: number, rules: ChannelRules): number | null => {
  const resolved = resolveChannel(name, rules)
  if (resolved instanceof ReplyError || !hasHistory(resolved.options)) return null
  return Math.min(resolved.options.historySize, stored)
}

/** The same channel at two nodes. */
const addRows = (one: ChannelRow, other: ChannelRow, rules: ChannelRules): ChannelRow => {
  const byRate = new Map<number, number>()
  for (const { rate, subscribers } of [...one.limited, ...other.limited])
    byRate.set(rate, (byRate.get(rate) ?? 0) + subscribers)
  return {
    name: one.name,
    subscribers: one.subscribers + other.subscribers,
    publishesPerSecond: one.publishesPerSecond + other.publishesPerSecond,
    lastPublish: Math.max(one.lastPublish ?? 0, other.lastPublish ?? 0) || null,
    historyLength: lengthIfStored(one.name, (one.historyLength ?? 0) + (other.historyLength ?? 0), rules),
    limited: rateCounts(byRate),
    keys: null,
    views: addViews(one.views, other.views)
  }
}

const addViews = (one: ViewCount | null, other: ViewCount | null): ViewCount | null => {
  if (one === null || other === null) return one ?? other
  return {
    subscribers: one.subscribers + other.subscribers,
    different: Math.max(one.different, other.different),
    unlimited: one.unlimited + other.unlimited
  }
}

/** Adds the number of keys, which the engine counts. Other channels, and all while it is unavailable, have none. */
const withKeys = (relay: Relay, rows: readonly ChannelRow[]): Promise<ChannelRow[]> =>
  Promise.all(
    rows.map(async (row) => {
      if (!isMap(row.name, relay.channelRules)) return row
      const keys = await ifAvailable(relay.maps.count(row.name))
      return { ...row, keys: typeof keys === 'number' ? keys : null }
    })
  )

const mergeRows = (rows: readonly ChannelRow[], rules: ChannelRules): ChannelRow[] => {
  const merged = new Map<string, ChannelRow>()
  for (const row of rows) {
    const other = merged.get(row.name)
    merged.set(row.name, other === undefined ? row : addRows(row, other, rules))
  }
  return [...merged.values()]
}

/**
 * A page of the channels of all nodes. Each node sends only its first channels, so the counts on the page are read again
 * from all nodes. Channels that are beyond the first ones at every node are missing.
 */
export const channelListPage = async (
  surveys: AdminSurveys,
  relay: Relay,
  { page, size, ...query }: PageQuery<ChannelSort>
): Promise<Page<ChannelRow>> => {
  const { channelRules: rules, clocks } = relay
  const compare = comparison(CHANNEL_SORTING, query)
  const lists = await surveys.survey('adminChannelList', { ...query, count: MAX_LIST_ROWS })
  const sent = lists.flatMap(({ result }) => result.rows)
  const first = new FirstRows(compare, (page + 1) * size)
  await forEachInSlices(mergeRows(sent, rules), (row) => first.add(row), new TimeSlice(clocks.monotonicMs))
  const list = first.list()
  const total = Math.max(list.total, ...lists.map(({ result }) => result.total))
  const found = pageOf({ rows: list.rows, total }, { page, size })
  const names = found.rows.map(({ name }) => name)
  const rows = await withKeys(relay, await channelRows(surveys, rules, names))
  return { ...found, rows: rows.sort(compare) }
}

/** These channels at all nodes. */
export const channelRows = async (
  surveys: AdminSurveys,
  rules: ChannelRules,
  names: readonly string[]
): Promise<ChannelRow[]> => {
  const rows = (await surveys.survey('adminChannelRows', names)).flatMap(({ result }) => result)
  return mergeRows(rows, rules)
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
