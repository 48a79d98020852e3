import type { OpenChannel } from './hub.js'

// A channel that has subscribers and receives no publications is often the first sign of a stopped publisher.

export interface SilentChannel {
  readonly name: string
  readonly silentMs: number
}

/** The longest silence of a channel with subscribers, in milliseconds, by namespace. */
export const longestSilences = (channels: Iterable<OpenChannel>, nowMs: number): ReadonlyMap<string, number> => {
  const longest = new Map<string, number>()
  for (const { namespace, size, silentSince } of channels) {
    // An observed channel is open without subscribers.
    if (size === 0) continue
    const silentMs = nowMs - silentSince
    if (silentMs > (longest.get(namespace) ?? -1)) longest.set(namespace, silentMs)
  }
  return longest
}

export interface SilentChannels {
  readonly count: number
  /** The channels with the longest silence, longest first. */
  readonly longest: readonly SilentChannel[]
}

/** The channels with subscribers that have been silent for this time. One pass; only `limit` of them are sorted. */
export const silentChannels = (
  channels: Iterable<OpenChannel>,
  nowMs: number,
  forMs: number,
  limit: number
): SilentChannels => {
  const longest: SilentChannel[] = []
  let count = 0
  for (const { name, size, silentSince } of channels) {
    const silentMs = nowMs - silentSince
    if (size === 0 || silentMs < forMs) continue
    count++
    if (longest.length === limit && silentMs <= (longest[limit - 1]?.silentMs ?? 0)) continue
    const index = longest.findIndex((other) => other.silentMs < silentMs)
    longest.splice(index === -1 ? longest.length : index, 0, { name, silentMs })
    if (longest.length > limit) longest.pop()
  }
  return { count, longest }
}
