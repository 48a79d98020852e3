import { type ChannelKind, hasHistory } from '../core/channels.js'
import type { Context } from '../core/context.js'
import { isObject } from '../core/requests.js'
import { allChannels, rowOf } from './channel-rows.js'
import type { ChannelDetail, LivePublication } from './contract.js'
import { shownPublication } from './publications.js'

const PUBLICATIONS = 50
/** A person looks at them. */
const MAX_PRESENCE = 1000

/** One channel as all nodes and the engine know it. */
export const channelDetail = async (context: Context, name: string, kind: ChannelKind): Promise<ChannelDetail> => {
  const { fleet, channels, nowMs } = context
  const [rows, publications, presence] = await Promise.all([
    allChannels(fleet, channels, nowMs, name),
    lastPublications(context, name, kind),
    presenceOf(context, name, kind)
  ])
  const row = rows.find((each) => each.name === name) ?? rowOf([name, 0, 0, 0, 0], channels)
  return {
    ...row,
    // What was published before this relay started, it did not count.
    lastPublish: row.lastPublish ?? publications[0]?.time ?? null,
    historyLength: row.historyLength === null ? null : historyLength(row.historyLength, publications.length),
    namespace: kind.namespace,
    schema: kind.options.schema,
    publications,
    presence
  }
}

/** What was read to its end needs no counting. */
const historyLength = (counted: number, read: number): number => (read < PUBLICATIONS ? read : Math.max(counted, read))

/** The newest first. */
const lastPublications = async (
  { history }: Context,
  name: string,
  { options }: ChannelKind
): Promise<readonly LivePublication[]> => {
  if (!hasHistory(options)) return []
  const page = await history.read(name, { since: null, limit: PUBLICATIONS, reverse: true }, options)
  return page.publications.map((publication) => shownPublication(name, publication))
}

const presenceOf = async (
  { presence }: Context,
  name: string,
  { options }: ChannelKind
): Promise<ChannelDetail['presence']> => {
  if (!options.presence) return null
  const entries = await presence.read(name)
  return [...entries].slice(0, MAX_PRESENCE).map(([client, info]) => ({ client, user: userOf(info) }))
}

const userOf = (info: string): string => {
  const parsed: unknown = JSON.parse(info)
  return isObject(parsed) && typeof parsed.user === 'string' ? parsed.user : ''
}
