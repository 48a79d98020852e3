import { hasHistory, type ResolvedChannel, resolveChannel } from '../core/channels.js'
import { wallTimeOf } from '../core/clocks.js'
import { ReplyError } from '../core/codes.js'
import { isObject } from '../core/json.js'
import type { ChannelRules } from '../core/options.js'
import type { Relay } from '../core/relay.js'
import type { Cluster } from '../core/survey.js'
import { forEachInSlices } from '../core/time-slice.js'
import type { ChannelDetail, ChannelRow, ChannelSort } from './contract.js'
import { rowsOfAll } from './listing.js'
import { shownPublication } from './live.js'

/** What one node knows of a channel; short, because there may be a hundred thousand. */
export type ChannelTotals = readonly [
  name: string,
  subscribers: number,
  publishesPerSecond: number,
  lastPublish: number,
  kept: number
]

/** A channel without subscribers is listed for so long after its last publication. */
const QUIET_MS = 60 * 60 * 1000

export const nodeChannels = async (relay: Relay, search: string): Promise<ChannelTotals[]> => {
  const { openChannels, activity, clocks } = relay
  const fits = searchTest(search)
  const now = clocks.monotonicMs()
  const totals: ChannelTotals[] = []
  const add = (name: string, subscribers: number): void => {
    if (!fits(name)) return
    const active = activity.channels.get(name)
    const rate = active === undefined ? 0 : Math.round(active.perSecond(now) * 10) / 10
    const lastPublish = active === undefined ? 0 : wallTimeOf(active.lastAt, clocks)
    totals.push([name, subscribers, rate, lastPublish, active?.stored(now) ?? 0])
  }
  await forEachInSlices(openChannels.values(), ({ name, size }) => add(name, size))
  await forEachInSlices(activity.channels.keys(), (name) => {
    if (!openChannels.has(name)) add(name, 0)
  })
  return totals
}

/** Part of the name in any letter case; '' fits all. */
export const searchTest = (search: string): ((text: string) => boolean) => {
  const lower = search.toLowerCase()
  return lower === '' ? () => true : (text) => text.toLowerCase().includes(lower)
}

/** The channels of all nodes. Each publication was counted by the one node that it came through. */
export const allChannels = async (
  cluster: Cluster,
  rules: ChannelRules,
  nowMs: () => number,
  search: string
): Promise<readonly ChannelRow[]> => {
  const merged = new Map<string, ChannelTotals>()
  for (const totals of await rowsOfAll(cluster, 'adminChannels', search)) {
    await forEachInSlices(totals, (one) => {
      const other = merged.get(one[0])
      merged.set(one[0], other === undefined ? one : sum(one, other))
    })
  }
  const now = nowMs()
  const rows: ChannelRow[] = []
  await forEachInSlices(merged.values(), (totals) => {
    const [, subscribers, , lastPublish] = totals
    if (subscribers > 0 || now - lastPublish < QUIET_MS) rows.push(rowOf(totals, rules))
  })
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
  [name, subscribers, publishesPerSecond, lastPublish, kept]: ChannelTotals,
  rules: ChannelRules
): ChannelRow => {
  const kind = resolveChannel(name, rules)
  const history = kind instanceof ReplyError || !hasHistory(kind.options) ? null : kind.options.historySize
  return {
    name,
    subscribers,
    publishesPerSecond,
    lastPublish: lastPublish === 0 ? null : lastPublish,
    historyLength: history === null ? null : Math.min(history, kept)
  }
}

/** Not as people of some country would sort: by the characters, which is faster by far. */
export const byText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)

const ORDERS: Readonly<Record<ChannelSort, (left: ChannelRow, right: ChannelRow) => number>> = {
  name: () => 0,
  subscribers: (left, right) => left.subscribers - right.subscribers,
  publishesPerSecond: (left, right) => left.publishesPerSecond - right.publishesPerSecond,
  lastPublish: (left, right) => (left.lastPublish ?? 0) - (right.lastPublish ?? 0),
  historyLength: (left, right) => (left.historyLength ?? -1) - (right.historyLength ?? -1)
}

export const CHANNEL_SORTS = Object.keys(ORDERS) as ChannelSort[]

export const channelOrder =
  (sort: ChannelSort) =>
  (left: ChannelRow, right: ChannelRow): number =>
    ORDERS[sort](left, right) || byText(left.name, right.name)

const PUBLICATIONS = 50
/** A person looks at them. */
const MAX_PRESENCE = 1000

/** One channel as all nodes and the engine know it. */
export const channelDetail = async (relay: Relay, name: string, kind: ResolvedChannel): Promise<ChannelDetail> => {
  const { cluster, channelRules: channels, clocks } = relay
  const [rows, content] = await Promise.all([
    allChannels(cluster, channels, clocks.nowMs, name),
    relay.readChannel(name, kind, PUBLICATIONS)
  ])
  const publications = content.publications.map((publication) => shownPublication(name, publication))
  const row = rows.find((each) => each.name === name) ?? rowOf([name, 0, 0, 0, 0], channels)
  return {
    ...row,
    // What was published before this relay started, it did not count.
    lastPublish: row.lastPublish ?? publications[0]?.time ?? null,
    historyLength: row.historyLength === null ? null : historyLength(row.historyLength, publications.length),
    namespace: kind.namespace,
    schema: kind.options.schema,
    publications,
    presence: content.presence === null ? null : presenceRows(content.presence)
  }
}

/** What was read to its end needs no counting. */
const historyLength = (counted: number, read: number): number => (read < PUBLICATIONS ? read : Math.max(counted, read))

const presenceRows = (presence: ReadonlyMap<string, string>): ChannelDetail['presence'] =>
  [...presence].slice(0, MAX_PRESENCE).map(([client, info]) => ({ client, user: userOf(info) }))

const userOf = (info: string): string => {
  const parsed: unknown = JSON.parse(info)
  return isObject(parsed) && typeof parsed.user === 'string' ? parsed.user : ''
}
