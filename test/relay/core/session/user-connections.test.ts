import t from 'tap'
import type { UserConnection, UserConnections } from '../../../../src/relay/core/engine.js'
import { coreRelay, settled } from '../../../helper/relay-core.js'

t.test('a client that leaves while it replaces a stale connection of its user is not counted', async (t) => {
  let counted: UserConnection[] = [{ user: '42', node: 'a node that has left', client: 'stale' }]
  let attempts = 0
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const userConnections: UserConnections = {
    add: async (connection, limit) => {
      attempts += 1
      if (attempts === 2) await released
      if (counted.length >= limit) return counted
      counted.push(connection)
      return null
    },
    remove: async ({ client }) => {
      counted = counted.filter((each) => each.client !== client)
    }
  }
  const { client, token } = coreRelay({ client: { user_connection_limit: 1 } }, { userConnections })
  const leaving = client()
  await leaving.send({ id: 1, connect: { token: token({ sub: '42' }) } })
  t.equal(attempts, 2)
  leaving.client.connectionLost()
  await settled()
  release()
  await settled()

  t.same(counted, [])
})
