import type { Context } from './context.js'
import { Answers, type ChannelPage, type ChannelPageParams, type NodeInfo } from './fleet.js'
import { globTest } from './glob.js'
import type { Relay } from './relay.js'
import { Slices } from './slices.js'
import { disconnectUser, refreshUser, subscribeUser, unsubscribeUser } from './user-actions.js'

/** What a node says of its own connections to the fleet. */
export const nodeAnswers = (relay: Relay): Answers => {
  const { context } = relay
  const answers = new Answers()
  answers.set('info', () => nodeInfo(relay))
  answers.set('channelPage', (params) => channelPage(context, params))
  answers.set('disconnect', (params) => {
    disconnectUser(context, params)
    return null
  })
  answers.set('unsubscribe', (params) => {
    unsubscribeUser(context, params)
    return null
  })
  answers.set('subscribe', (params) => subscribeUser(context, params))
  answers.set('refresh', (params) => {
    refreshUser(context, params)
    return null
  })
  answers.set('userClients', (user) => context.roster.ofUser(user).map(({ client }) => client))
  answers.set('emulate', ({ session, data }) => {
    const client = context.sessions.get(session)
    client?.commands?.receive(data)
    return client !== undefined
  })
  return answers
}

/** A page is one message between nodes, which neither of them may be busy with for long. */
const CHANNELS_PER_PAGE = 5000

/** Channels are numbered as they come, so a channel that is there all the time is on exactly one page. */
const channelPage = async ({ hub }: Context, { pattern, after }: ChannelPageParams): Promise<ChannelPage> => {
  const fits = pattern === '' ? () => true : globTest(pattern)
  const slices = new Slices()
  const channels: [name: string, clients: number][] = []
  for (const { number, name, size } of hub.channels.values()) {
    if (slices.isOverAfterStep) await slices.next()
    if (number <= after || !fits(name)) continue
    channels.push([name, size])
    if (channels.length === CHANNELS_PER_PAGE) return { channels, next: number }
  }
  return { channels, next: null }
}

const nodeInfo = (relay: Relay): NodeInfo => {
  const { clients, users, channels, subscriptions } = relay.stats()
  return {
    uid: relay.context.node,
    name: relay.context.name,
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
