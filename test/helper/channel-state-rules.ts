import type { ChannelStateRules } from '../../src/relay/core/engine.js'

/** Channels that begin with `room:` have events of the proxy `default`. */
export const STATE_RULES: ChannelStateRules = {
  proxies: new Set(['default']),
  proxyOf: (channel) => (channel.startsWith('room:') ? 'default' : null),
  vacatedDelayMs: 100
}
