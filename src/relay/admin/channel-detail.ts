import { schemas } from '../../../schemas/registry.js'
import { isObject } from '../../shared/is-object.js'
import type { ResolvedChannel } from '../core/channel-names.js'
import type { Relay } from '../core/relay.js'
import type { AdminSurveys } from './admin-surveys.js'
import { channelRows, nodeChannel } from './channel-list.js'
import type { ChannelDetail, ChannelPresence, LivePublication } from './contract.js'
import { livePublication } from './live.js'

const MAX_PUBLICATIONS = 50

/** The counts of all nodes and the engine's data of one channel. */
export const channelDetail = async (
  surveys: AdminSurveys,
  relay: Relay,
  name: string,
  resolved: ResolvedChannel
): Promise<ChannelDetail> => {
  const [[row = nodeChannel(relay, name)], content] = await Promise.all([
    channelRows(surveys, relay.channelRules, [name]),
    relay.readChannel(name, resolved, MAX_PUBLICATIONS)
  ])
  const publications = content.publications.map((publication) => livePublication(name, publication))
  const { schema } = resolved.options
  return {
    ...row,
    // Publications from before the start of the relay are not counted.
    lastPublish: row.lastPublish ?? publications[0]?.time ?? null,
    historyLength: row.historyLength === null ? null : likelyLength(row.historyLength, publications.length),
    namespace: resolved.namespace,
    schema,
    example: schema === null ? null : exampleOf(schema),
    publications,
    presence: content.presence === null ? null : presenceOf(content.presence),
    isMap: resolved.options.map !== null
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
const likelyLength = (counted: number, read: number): number =>
  read < MAX_PUBLICATIONS ? read : Math.max(counted, read)

const exampleOf = (schema: string): unknown => {
  const examples: unknown = Object.entries(schemas).find(([name]) => name === schema)?.[1].examples
  return Array.isArray(examples) ? (examples[0] ?? null) : null
}

const MAX_PRESENCE = 200

const presenceOf = (presence: ReadonlyMap<string, string>): ChannelPresence => ({
  total: presence.size,
  clients: [...presence].slice(0, MAX_PRESENCE).map(([client, info]) => ({ client, user: userIn(info) }))
})

const userIn = (info: string): string => {
  const parsed: unknown = JSON.parse(info)
  return isObject(parsed) && typeof parsed.user === 'string' ? parsed.user : ''
}
