import t from 'tap'
import type { FigureSample, Figures } from '../../src/relay/admin/contract.js'
import { FIGURE_KINDS } from '../../src/relay-admin/figures.js'
import { columnsOf, figureOf, nodesOf, withHistory, withSample } from '../../src/relay-admin/samples.js'

const NO_FIGURES: Figures = {
  connections: 0,
  subscriptions: 0,
  channels: 0,
  publishesPerSecond: 0,
  deliveriesPerSecond: 0,
  bytesPerSecond: 0,
  queuedBytes: 0,
  slowReaders: 0,
  conflatedReaders: 0,
  eventLoopDelayMs: 0,
  memoryBytes: 0
}

const sampleAt = (time: number, ...nodes: readonly Partial<Figures>[]): FigureSample => ({
  time,
  nodes: nodes.map((figures, index) => ({ ...NO_FIGURES, ...figures, node: `n${index}`, name: `relay ${index}` }))
})
const LINES = [{ key: 'connections', label: '' }] as const

t.test('figures', async (t) => {
  const sample = sampleAt(0, { connections: 3, eventLoopDelayMs: 2 }, { connections: 4, eventLoopDelayMs: 9 })

  t.test('figures of all nodes are summed, except for the event-loop delay, which is the maximum', async (t) => {
    t.equal(figureOf(sample, 'connections', null), 7)
    t.equal(figureOf(sample, 'eventLoopDelayMs', null), 9)
  })

  t.test('the figure of a node is null in a sample without that node', async (t) => {
    t.equal(figureOf(sample, 'connections', 'n1'), 4)
    t.equal(figureOf(sample, 'connections', 'n7'), null)
    t.equal(figureOf(sampleAt(0), 'connections', null), null)
  })

  t.test('nodes are sorted by name with numbers in numeric order', async (t) => {
    const names = ['relay worker 10', 'relay worker 2', 'relay worker 1']
    const nodes = names.map((name) => ({ ...NO_FIGURES, node: name, name }))
    t.same(
      nodesOf({ time: 0, nodes }).map(({ name }) => name),
      ['relay worker 1', 'relay worker 2', 'relay worker 10']
    )
    t.same(nodesOf(null), [])
  })

  t.test('every figure is drawn in exactly one chart', async (t) => {
    const drawn = FIGURE_KINDS.flatMap(({ lines }) => lines.map(({ key }) => key))
    const { channels: _, ...all } = NO_FIGURES
    t.same([...drawn].sort(), Object.keys(all).sort())
  })
})

t.test('a chart', async (t) => {
  t.test('a chart has a gap where samples are missing', async (t) => {
    const samples = [1000, 2000, 60_000, 61_000].map((time) => sampleAt(time, { connections: 1 }))
    t.same(columnsOf(samples, LINES, null), [
      [1, 2, 3, 60, 61],
      [1, 1, null, 1, 1]
    ])
  })

  t.test('a chart without samples has empty columns', async (t) => t.same(columnsOf([], LINES, null), [[], []]))

  t.test('a chart contains the last fifteen minutes', async (t) => {
    const series = withSample([sampleAt(0), sampleAt(1000), sampleAt(2000)], sampleAt(901_000))
    t.same(
      series.map(({ time }) => time),
      [2000, 901_000]
    )
  })

  t.test('recorded samples fill the times without samples of the page', async (t) => {
    const own = [11_000, 12_000, 31_000].map((time) => sampleAt(time, { connections: 2 }))
    const recorded = [5000, 10_000, 15_000, 20_000, 25_000, 30_000].map((time) => sampleAt(time))
    t.same(
      withHistory(own, recorded).map(({ time }) => time),
      [5000, 11_000, 12_000, 15_000, 20_000, 25_000, 31_000]
    )
  })

  t.test('a sample replaces an earlier sample of the same time', async (t) => {
    const series = withSample([sampleAt(1000, { connections: 1 })], sampleAt(1000, { connections: 2 }))
    t.same(columnsOf(series, LINES, null), [[1], [2]])
  })
})

const TOPS: readonly (readonly [string, number, number, string])[] = [
  ['Connections', 0, 2, '2'],
  ['Connections', 1300, 2000, '2k'],
  ['Queue depth', 0, 1024, '1 KB'],
  ['Memory', 180 * 1024 ** 2, 200 * 1024 ** 2, '200 MB'],
  ['Event-loop delay', 3, 10, '10 ms']
]
t.test('an axis', async (t) => {
  for (const [title, value, top, text] of TOPS) {
    t.test(`the axis of ${title.toLowerCase()} ends at ${text} for the value ${value}`, async (t) => {
      const kind = FIGURE_KINDS.find((one) => one.title === title)
      t.equal(kind?.top(value), top)
      t.equal(kind?.short(top), text)
    })
  }
})
