import { Answers, type NodeInfo } from './fleet.js'
import { globTest } from './glob.js'
import type { Relay } from './relay.js'
import { disconnectUser, refreshUser, subscribeUser, unsubscribeUser } from './user-actions.js'

/** What a node says of its own connections to the fleet. */
export const nodeAnswers = (relay: Relay): Answers => {
  const { context } = relay
  const answers = new Answers()
  answers.set('info', () => nodeInfo(relay))
  answers.set('channels', (pattern) => {
    const fits = pattern === '' ? () => true : globTest(pattern)
    const found = [...context.hub.channels.values()].filter(({ name }) => fits(name))
    return Object.fromEntries(found.map(({ name, size }) => [name, size]))
  })
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
  answers.set('emulate', ({ session, data }) => {
    const client = context.sessions.get(session)
    client?.commands?.receive(data)
    return client !== undefined
  })
  return answers
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
