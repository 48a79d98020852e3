import t from 'tap'
import type { SurveyHandler } from '../../../../src/relay/core/cluster.js'
import { SingleNodeCluster } from '../../../../src/relay/engine/memory.js'
import { coreRelay } from '../../../helper/relay-core.js'

class ClusterWithGaps extends SingleNodeCluster {
  missedCommands = (): void => undefined

  override async start(node: string, handler: SurveyHandler, missedCommands?: () => void): Promise<void> {
    await super.start(node, handler)
    if (missedCommands !== undefined) this.missedCommands = missedCommands
  }
}

t.test('after missed commands, the clients of that time are closed at 500 per second', async (t) => {
  const cluster = new ClusterWithGaps()
  const { connected, relay, advance } = coreRelay({ client: { ping_interval: '10000000s' } }, { cluster })
  const clients = await Promise.all(Array.from({ length: 600 }, (_, index) => connected(String(index))))
  cluster.missedCommands()
  t.equal(relay.stats().clients, 600, 'none is closed at once')
  await advance(500)
  t.equal(relay.stats().clients, 350)
  const later = await connected('later')
  cluster.missedCommands()
  const afterSecondGap = await connected('after the second gap')
  await advance(1000)

  t.same([...new Set(clients.map(({ closed }) => closed))], ['3010 insufficient state'])
  t.equal(later.closed, '3010 insufficient state')
  t.equal(afterSecondGap.closed, null)
})
