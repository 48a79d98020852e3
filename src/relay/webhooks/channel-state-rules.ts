import { resolveChannel } from '../core/channel-names.js'
import { ReplyError } from '../core/codes.js'
import type { ChannelStateRules } from '../core/engine.js'
import type { ChannelOptions, ChannelRules } from '../core/options.js'

/** The part of the configuration that channel states depend on. */
export interface ChannelStateConfig {
  readonly channels: ChannelRules
  readonly vacatedDelayMs: number
}

/** Null if no namespace has a proxy for channel states, so that presence is not observed at all. */
export const channelStateRules = ({ channels, vacatedDelayMs }: ChannelStateConfig): ChannelStateRules | null => {
  const all = [channels.withoutNamespace, ...channels.namespaces.values()]
  const proxies = new Set(all.map(({ stateProxy }) => stateProxy).filter((name) => name !== null))
  if (proxies.size === 0) return null
  return { proxies, vacatedDelayMs, proxyOf: (channel) => optionsOf(channel, channels)?.stateProxy ?? null }
}

/** Null for a channel of a namespace that was removed. */
export const optionsOf = (channel: string, rules: ChannelRules): ChannelOptions | null => {
  const resolved = resolveChannel(channel, rules)
  return resolved instanceof ReplyError ? null : resolved.options
}
