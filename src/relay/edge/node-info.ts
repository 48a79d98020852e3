import type { Relay } from '../core/relay.js'

/** What the operator's tools show of one node. */
export const nodeInfo = (relay: Relay): Readonly<Record<string, unknown>> => {
  const { clients, users, channels, subscriptions } = relay.stats()
  return {
    uid: relay.context.node,
    name: 'relay',
    version: relay.context.version,
    num_clients: clients,
    num_users: users,
    num_subs: subscriptions,
    num_channels: channels,
    uptime: Math.floor(process.uptime()),
    metrics: { interval: 0, items: {} },
    process: { cpu: 0, rss: process.memoryUsage.rss() }
  }
}
