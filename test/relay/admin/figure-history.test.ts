import t from 'tap'
import type { AdminSurveys } from '../../../src/relay/admin/admin-surveys.js'
import type { FigureSample } from '../../../src/relay/admin/contract.js'
import { FigureHistory } from '../../../src/relay/admin/figure-history.js'
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

/** A history of a cluster with these nodes. */
const startHistory = () => {
  const state = { nowMs: 0, isEnabled: true, nodes: { one: COUNTS } as Record<string, NodeCounts> | null }
  const errors: unknown[] = []
  const history = new FigureHistory({
    surveys: {
      survey: async () => Object.entries(state.nodes ?? fail()).map(([node, result]) => ({ node, result }))
      // The history only sends this survey.
    } as unknown as AdminSurveys,
    isEnabled: () => state.isEnabled,
    nowMs: () => state.nowMs,
    log: { info: () => undefined, warn: () => undefined, error: (facts: unknown) => errors.push(facts) }
  })
  const recordAt = async (nowMs: number): Promise<void> => {
    state.nowMs = nowMs
    await history.record()
  }
  return { history, state, errors, recordAt, times: () => history.samples.map(({ time }) => time) }
}
const fail = (): never => {
  throw new Error('no counts')
}

t.test('the history of figures', async (t) => {
  t.test('the history has the rates of all nodes between two surveys', async (t) => {
    const { history, state, recordAt } = startHistory()
    await recordAt(0)
    t.same(history.samples, [], 'no rates before the second survey')
    state.nodes = { one: { ...COUNTS, atMs: 5000, published: 50, connections: 3 }, other: COUNTS }
    await recordAt(5003)
    await recordAt(10_001)
    t.match(history.samples, [
      { time: 5000, nodes: [{ node: 'one', name: 'relay', publishesPerSecond: 10, connections: 3 }] },
      { time: 10_000, nodes: [{ node: 'one' }, { node: 'other' }] }
    ])
  })

  t.test('the history keeps the figures of a node that has exited', async (t) => {
    const { history, state, recordAt } = startHistory()
    state.nodes = { one: COUNTS, other: COUNTS }
    for (const time of [0, 5000]) await recordAt(time)
    state.nodes = { one: COUNTS }
    await recordAt(10_000)
    t.match(history.samples, [{ nodes: { length: 2 } }, { nodes: { length: 1 } }])
  })

  t.test('the history contains the last fifteen minutes', async (t) => {
    const { state, recordAt, times } = startHistory()
    for (const time of [0, 5000, 10_000, 15 * MINUTE_MS + 5000]) await recordAt(time)
    t.same(times(), [10_000, 15 * MINUTE_MS + 5000])
    state.nowMs = 60 * MINUTE_MS
    t.same(times(), [])
  })

  t.test('the history drops samples that are ahead after the system clock was set back', async (t) => {
    const { recordAt, times } = startHistory()
    for (const time of [0, 5000, 10 * MINUTE_MS, 10_000]) await recordAt(time)
    t.same(times(), [5000, 10_000])
  })

  t.test('a recently started node adopts the earlier samples of another node', async (t) => {
    const { history, recordAt, times } = startHistory()
    for (const time of [10_000, 15_000]) await recordAt(time)
    const earlier = [5000, 10_000, 15_000].map((time): FigureSample => ({ time, nodes: [] }))
    history.addEarlier(earlier)
    t.same(times(), [5000, 10_000, 15_000])
    t.equal(history.oldest, 5000)
  })

  t.test('the history records nothing without an operators page', async (t) => {
    const { state, recordAt, times } = startHistory()
    await recordAt(0)
    state.isEnabled = false
    await recordAt(5000)
    state.isEnabled = true
    await recordAt(10_000)
    t.same(times(), [], 'and starts again with new counts')
  })

  t.test('a failed survey is logged', async (t) => {
    const { state, errors, recordAt } = startHistory()
    state.nodes = null
    await recordAt(0)
    t.match(errors, [{ err: { message: 'no counts' } }])
  })
})
