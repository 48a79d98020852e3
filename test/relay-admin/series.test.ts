import t from 'tap'
import type { Figures, Frame } from '../../src/relay/admin/contract.js'
import { FIGURE_KINDS } from '../../src/relay-admin/figures.js'
import { columnsOf, figureOf, nodesOf, withFrame } from '../../src/relay-admin/series.js'

const NOTHING: Figures = {
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

const frameAt = (time: number, ...nodes: readonly Partial<Figures>[]): Frame => ({
  time,
  nodes: nodes.map((figures, index) => ({ ...NOTHING, ...figures, node: `n${index}`, name: `relay ${index}` }))
})
const LINES = [{ key: 'connections', label: '' }] as const

t.test('figures', async (t) => {
  const frame = frameAt(0, { connections: 3, eventLoopDelayMs: 2 }, { connections: 4, eventLoopDelayMs: 9 })

  t.test('of all nodes add up, except for the delay, which is that of the slowest', async (t) => {
    t.equal(figureOf(frame, 'connections', null), 7)
    t.equal(figureOf(frame, 'eventLoopDelayMs', null), 9)
  })

  t.test('of one node are its own, and unknown where it was not there', async (t) => {
    t.equal(figureOf(frame, 'connections', 'n1'), 4)
    t.equal(figureOf(frame, 'connections', 'n7'), null)
    t.equal(figureOf(frameAt(0), 'connections', null), null)
  })

  t.test('stand in the order of the names of their nodes', async (t) => {
    const names = ['relay worker 10', 'relay worker 2', 'relay worker 1']
    const nodes = names.map((name) => ({ ...NOTHING, node: name, name }))
    t.same(
      nodesOf({ time: 0, nodes }).map(({ name }) => name),
      ['relay worker 1', 'relay worker 2', 'relay worker 10']
    )
    t.same(nodesOf(null), [])
  })

  t.test('are all drawn, each once', async (t) => {
    const drawn = FIGURE_KINDS.flatMap(({ lines }) => lines.map(({ key }) => key))
    const { channels: _, ...all } = NOTHING
    t.same([...drawn].sort(), Object.keys(all).sort())
  })
})

t.test('a chart', async (t) => {
  t.test('has a gap where nothing was gathered', async (t) => {
    const frames = [1000, 2000, 60_000, 61_000].map((time) => frameAt(time, { connections: 1 }))
    t.same(columnsOf(frames, LINES, null), [
      [1, 2, 3, 60, 61],
      [1, 1, null, 1, 1]
    ])
  })

  t.test('begins empty', async (t) => t.same(columnsOf([], LINES, null), [[], []]))

  t.test('keeps fifteen minutes', async (t) => {
    const kept = withFrame([frameAt(0), frameAt(1000), frameAt(2000)], frameAt(901_000))
    t.same(
      kept.map(({ time }) => time),
      [2000, 901_000]
    )
  })

  t.test('takes the newer one of two that say the same second', async (t) => {
    const kept = withFrame([frameAt(1000, { connections: 1 })], frameAt(1000, { connections: 2 }))
    t.same(columnsOf(kept, LINES, null), [[1], [2]])
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
    t.test(`of ${title.toLowerCase()} ends at ${text} for ${value}`, async (t) => {
      const kind = FIGURE_KINDS.find((one) => one.title === title)
      t.equal(kind?.top(value), top)
      t.equal(kind?.short(top), text)
    })
  }
})
