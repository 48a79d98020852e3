import t from 'tap'
import type { NodeFigures } from '../../../src/relay/admin/contract.js'
import { FigureHistory, FigureRecorder, type RecordedFigures } from '../../../src/relay/admin/figure-history.js'
import type { NodeCounts } from '../../../src/relay/admin/node-figures.js'

const MINUTE_MS = 60_000
const COUNTS: NodeCounts = {
  name: 'relay',
  atMs: 0,
  published: 0,
  delivered: 0,
  bytesSent: 0,
  connections: 0,
  subscriptions: 0,
  channels: 0,
  queuedBytes: 0,
  slowReaders: 0,
  conflatedReaders: 0,
  eventLoopDelayMs: 0,
  memoryBytes: 0
}
const figuresOf = (node: string): NodeFigures => {
  const { published: _, delivered: __, bytesSent: ___, atMs: ____, ...figures } = COUNTS
  return { ...figures, node, publishesPerSecond: 0, deliveriesPerSecond: 0, bytesPerSecond: 0 }
}
const recorded = (time: number, node = 'one'): RecordedFigures => ({ time, figures: figuresOf(node) })
const times = (history: FigureHistory, nowMs: number): number[] => history.samples(nowMs).map(({ time }) => time)

t.test('the history of figures', async (t) => {
  t.test('the history has one sample for the figures of all nodes at a time', async (t) => {
    const history = new FigureHistory()
    for (const node of ['one', 'other', 'one']) history.add(recorded(5000, node), 5000)
    const [sample] = history.samples(5000)
    t.same(
      sample?.nodes.map(({ node }) => node),
      ['one', 'other']
    )
  })

  t.test('the history contains the last fifteen minutes', async (t) => {
    const history = new FigureHistory()
    for (const time of [5000, 10_000, 15 * MINUTE_MS + 5000]) history.add(recorded(time), time)
    t.same(times(history, 15 * MINUTE_MS + 5000), [10_000, 15 * MINUTE_MS + 5000])
    t.same(times(history, 60 * MINUTE_MS), [])
  })

  t.test('the history drops samples that are ahead after the system clock was set back', async (t) => {
    const history = new FigureHistory()
    for (const time of [5000, 10 * MINUTE_MS]) history.add(recorded(time), time)
    history.add(recorded(10_000), 10_000)
    t.same(times(history, 10_000), [5000, 10_000])
  })

  t.test('a recently started node adopts the samples of another node', async (t) => {
    const [history, longer] = [new FigureHistory(), new FigureHistory()]
    for (let time = 0; time < 15 * MINUTE_MS; time += 5000) longer.add(recorded(time, 'other'), time)
    const nowMs = 15 * MINUTE_MS - 5000
    history.add(recorded(nowMs), nowMs)
    t.notOk(history.isComplete(nowMs))
    t.ok(longer.isComplete(nowMs))

    history.merge(longer.samples(nowMs), nowMs)
    t.ok(history.isComplete(nowMs))
    t.equal(history.oldest(nowMs), 0)
    t.equal(history.samples(nowMs).at(-1)?.nodes.length, 2)
  })
})

t.test('the recorder of figures', async (t) => {
  let counts = COUNTS
  let nowMs = 0
  let isEnabled = true
  const records: RecordedFigures[] = []
  const errors: unknown[] = []
  const recorder = new FigureRecorder({
    node: 'one',
    counts: () => counts,
    isEnabled: () => isEnabled,
    nowMs: () => nowMs,
    onRecorded: (record) => records.push(record),
    onError: (error) => errors.push(error)
  })

  t.test('the recorder records rates for the time between two calls', async (t) => {
    recorder.record()
    t.same(records, [], 'no rates before the second call')
    nowMs = 5003
    counts = { ...COUNTS, atMs: 5000, published: 50, connections: 3 }
    recorder.record()
    t.match(records, [{ time: 5000, figures: { node: 'one', name: 'relay', publishesPerSecond: 10, connections: 3 } }])
  })

  t.test('the recorder records nothing without an operators page', async (t) => {
    isEnabled = false
    recorder.record()
    isEnabled = true
    recorder.record()
    t.equal(records.length, 1, 'and starts again with new counts')
  })

  t.test('an error does not stop the recorder', async (t) => {
    const failing = new FigureRecorder({
      node: 'one',
      counts: () => {
        throw new Error('no counts')
      },
      isEnabled: () => true,
      nowMs: () => 0,
      onRecorded: () => undefined,
      onError: (error) => errors.push(error)
    })
    failing.record()
    t.match(errors, [{ message: 'no counts' }])
  })
})
