import t from 'tap'
import { SampleHistory } from '../../../src/relay/admin/collector.js'

t.test('the history of figures drops samples that are ahead after the system clock was set back', async (t) => {
  const history = new SampleHistory()
  for (const time of [1000, 2000, 602_000, 603_000]) history.add({ time, nodes: [] })
  history.add({ time: 3000, nodes: [] })

  t.same(
    history.since(3000).map(({ time }) => time),
    [1000, 2000, 3000]
  )
})
