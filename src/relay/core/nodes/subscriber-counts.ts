import type { ChannelPage, ChannelPageParams } from '../node-requests.js'
import type { RelayContext } from '../session/context.js'
import { forEachInSlices, TimeSlice } from '../time-slice.js'
import { globTest } from './glob.js'

/** Subscriber counts of all nodes, by channel. `pattern` is a glob; '' matches all. */
export const countSubscribers = async (
  { surveys }: RelayContext,
  pattern: string,
  slice: TimeSlice
): Promise<ReadonlyMap<string, number>> => {
  const counts = new Map<string, number>()
  const add = ({ channels }: ChannelPage): Promise<void> =>
    forEachInSlices(channels, ([name, clients]) => counts.set(name, (counts.get(name) ?? 0) + clients), slice)
  for (const { node, result } of await surveys.survey('channelPage', { pattern, after: 0 })) {
    await add(result)
    for (let { next } = result; next !== null; ) {
      const page: ChannelPage | null = await surveys.surveyNode(node, 'channelPage', { pattern, after: next })
      // The node has left, and its clients are disconnected.
      if (page === null) break
      await add(page)
      next = page.next
    }
  }
  return counts
}

/** Limits the size of one message between nodes. */
const CHANNELS_PER_PAGE = 5000

/** Pages follow the sequence numbers of the channels, so a channel that stays open is on exactly one page. */
export const channelPage = async (
  { hub, monotonicMs }: RelayContext,
  { pattern, after }: ChannelPageParams
): Promise<ChannelPage> => {
  const matches = pattern === '' ? () => true : (globTest(pattern) ?? (() => false))
  const slice = new TimeSlice(monotonicMs)
  const channels: [name: string, clients: number][] = []
  for (const { sequence, name, size } of hub.channels.values()) {
    if (slice.isOverAfterStep) await slice.next()
    // A channel that only an operator observes is open without subscribers.
    if (size === 0 || sequence <= after || !matches(name)) continue
    channels.push([name, size])
    if (channels.length === CHANNELS_PER_PAGE) return { channels, next: sequence }
  }
  return { channels, next: null }
}
