import { schemas } from '../../../schemas/registry.js'
import { isObject } from '../../shared/is-object.js'
import type { ResolvedChannel } from '../core/channels.js'
import type { Relay } from '../core/relay.js'
import type { Cluster } from '../core/survey.js'
import { addTotals, type ChannelTotals, rowOf, totalsOf } from './channel-list.js'
import type { ChannelDetail, ChannelPresence, LivePublication, RateCount } from './contract.js'
import { livePublication } from './live.js'

/** The counts of one channel, of one node or of all together. */
export interface ChannelCounts {
  readonly totals: ChannelTotals
  /** Subscribers with a limited rate. */
  readonly limited: readonly RateCount[]
}

export const nodeChannel = (relay: Relay, name: string): ChannelCounts => {
  const open = relay.openChannels.get(name)
  return {
    totals: totalsOf(relay, name, open?.size ?? 0),
    limited: [...(open?.limited ?? [])].map(([rate, subscribers]) => ({ rate, subscribers }))
  }
}

/** The counts of all nodes, highest rate first. */
const allCounts = async (cluster: Cluster, name: string): Promise<ChannelCounts> => {
  let totals: ChannelTotals = [name, 0, 0, 0, 0]
  const byRate = new Map<number, number>()
  for (const { result } of await cluster.survey('adminChannel', name)) {
    totals = addTotals(totals, result.totals)
    for (const { rate, subscribers } of result.limited) byRate.set(rate, (byRate.get(rate) ?? 0) + subscribers)
  }
  const limited = [...byRate].map(([rate, subscribers]) => ({ rate, subscribers }))
  return { totals, limited: limited.sort((left, right) => right.rate - left.rate) }
}

export const subscriberCount = async (cluster: Cluster, name: string): Promise<number> =>
  (await allCounts(cluster, name)).totals[1]

const MAX_PUBLICATIONS = 50

/** The counts of all nodes and the engine's data of one channel. */
export const channelDetail = async (relay: Relay, name: string, resolved: ResolvedChannel): Promise<ChannelDetail> => {
  const [{ totals, limited }, content] = await Promise.all([
    allCounts(relay.cluster, name),
    relay.readChannel(name, resolved, MAX_PUBLICATIONS)
  ])
  const publications = content.publications.map((publication) => livePublication(name, publication))
  const row = rowOf(totals, relay.channelRules)
  const { schema } = resolved.options
  return {
    ...row,
    // Publications from before the start of the relay are not counted.
    lastPublish: row.lastPublish ?? publications[0]?.time ?? null,
    historyLength: row.historyLength === null ? null : historyLength(row.historyLength, publications.length),
    namespace: resolved.namespace,
    limited,
    schema,
    example: schema === null ? null : exampleOf(schema),
    publications,
    presence: content.presence === null ? null : presenceOf(content.presence)
  }
}

/** A publication of the history with its complete data; null if it is no longer there. */
export const storedPublication = async (
  relay: Relay,
  name: string,
  resolved: ResolvedChannel,
  offset: number
): Promise<LivePublication | null> => {
  const publication = await relay.readPublication(name, resolved, offset)
  return publication === null ? null : livePublication(name, publication, Number.POSITIVE_INFINITY)
}

/** The exact length if the complete history was read, else the counted length. */
const historyLength = (counted: number, read: number): number =>
  read < MAX_PUBLICATIONS ? read : Math.max(counted, read)

const exampleOf = (schema: string): unknown => {
  const examples: unknown = Object.entries(schemas).find(([name]) => name === schema)?.[1].examples
  return Array.isArray(examples) ? (examples[0] ?? null) : null
}

const MAX_PRESENCE = 200

const presenceOf = (presence: ReadonlyMap<string, string>): ChannelPresence => ({
  total: presence.size,
  clients: [...presence].slice(0, MAX_PRESENCE).map(([client, info]) => ({ client, user: userOf(info) }))
})

const userOf = (info: string): string => {
  const parsed: unknown = JSON.parse(info)
  return isObject(parsed) && typeof parsed.user === 'string' ? parsed.user : ''
}
