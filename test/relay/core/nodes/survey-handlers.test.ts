import t from 'tap'
import { coreRelay, settled } from '../../../helper/relay-core.js'

t.test('the statistics of a node have its uptime in whole seconds', async (t) => {
  const { relay } = coreRelay({}, { processStats: () => ({ uptimeSeconds: 7.9, memoryBytes: 1000 }) })

  await settled()

  t.match(await relay.info(), [{ uptime: 7, process: { rss: 1000 } }])
})
