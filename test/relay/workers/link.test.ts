import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish.js'
import { SurveyHandlers } from '../../../src/relay/core/survey.js'
import type { FrameReader } from '../../../src/relay/workers/ipc.js'
import { FrameSplitter, FrameWriter, type IpcChannel, IpcClosed } from '../../../src/relay/workers/ipc.js'
import { WorkerCluster } from '../../../src/relay/workers/survey.js'
import { WorkerEngine } from '../../../src/relay/workers/worker-engine.js'
import { startOwner } from '../../helper/owner-process.js'

const TEXTS = ['', 'floor:1', 'å€😀\u0000"\n', 'x'.repeat(200_000), 'é'.repeat(70_000)]
const HISTORY = { historySize: 10, historyTtlMs: 60_000, historyMetaTtlMs: 60_000 }

const write = (): Buffer => {
  const out = new FrameWriter()
  for (const [index, text] of TEXTS.entries()) {
    out
      .begin(7, index)
      .text(text)
      .textOrNull(null)
      .textOrNull(text)
      .number(index / 3)
      .byte(255)
    out.finish()
  }
  return out.take()
}

const readAll = (frame: FrameReader): unknown[] => [
  frame.byte(),
  frame.whole(),
  frame.text(),
  frame.textOrNull(),
  frame.textOrNull(),
  frame.number(),
  frame.byte()
]
const EXPECTED = TEXTS.map((text, index) => [7, index, text, null, text, index / 3, 255])

t.test('frames', async (t) => {
  for (const size of [1, 3, 4, 5, 9, 64 * 1024, Number.MAX_SAFE_INTEGER]) {
    t.test(`arrive as they were written, in pieces of ${size}`, async (t) => {
      const read: unknown[] = []
      const splitter = new FrameSplitter((frame) => read.push(readAll(frame)))
      const bytes = write()
      for (let at = 0; at < bytes.length; at += size) splitter.receive(bytes.subarray(at, at + size))
      t.same(read, EXPECTED)
    })
  }

  t.test('are not read beyond their end', async (t) => {
    const out = new FrameWriter()
    out.begin(7, 1).text('abc')
    out.finish()
    const splitter = new FrameSplitter((frame) => {
      t.equal(frame.byte(), 7)
      frame.whole()
      frame.text()
      t.throws(() => frame.byte(), RangeError)
    })
    splitter.receive(out.take())
    t.throws(() => splitter.receive(Buffer.alloc(16, 0xff)), RangeError)
  })
})

t.test('a link', async (t) => {
  const primary = await startOwner(t)
  const [ipc, other] = primary.links as [IpcChannel, IpcChannel]
  const engine = new WorkerEngine(ipc)
  const publish = (data: string): Promise<unknown> =>
    Promise.resolve(engine.publish('ns:1', { ...PLAIN_PUBLICATION, data }, HISTORY))

  t.test('carries a burst of large publications in order', async (t) => {
    const offsets: number[] = []
    const all = new Promise<void>((resolve) => {
      engine.start({
        publication: (_channel, { offset }) => {
          if (offsets.push(offset) === 40) resolve()
        },
        joinOrLeave: () => undefined,
        mayHaveMissed: () => undefined,
        positions: () => []
      })
    })
    await engine.subscribe('ns:1')
    const data = JSON.stringify('y'.repeat(300_000))
    await Promise.all(Array.from({ length: 40 }, () => publish(data)))
    await all
    t.same(
      offsets,
      Array.from({ length: 40 }, (_, index) => index + 1)
    )
  })

  t.test('is done without a node that stays silent', async (t) => {
    await primary.order({ kind: 'fresh', patienceMs: 200 })
    const answers = (answer: () => Promise<boolean>): SurveyHandlers => {
      const all = new SurveyHandlers()
      all.set('emulate', answer)
      return all
    }
    const cluster = new WorkerCluster(ipc)
    await cluster.start(
      'here',
      answers(async () => true)
    )
    await new WorkerCluster(other).start(
      'silent',
      answers(() => new Promise(() => undefined))
    )
    const params = { session: 's', data: '' }
    t.same(await cluster.survey('emulate', params), [{ node: 'here', result: true }])
    t.equal(await cluster.surveyNode('silent', 'emulate', params), null)
    t.equal(await cluster.surveyNode('nowhere', 'emulate', params), null)
    t.equal(cluster.size, 2)
    await t.rejects(
      ipc.request(
        'stop',
        () => undefined,
        () => undefined
      ),
      'what nobody knows is answered with a failure'
    )
  })

  t.test('that carries nonsense is closed, and no other', async (t) => {
    const fault = once(primary.child, 'message')
    const stream = primary.streams[1] as Duplex
    // A kind that there is not, and then a length that no frame has: a shorter one would be waited for.
    stream.write(Buffer.concat([Buffer.from([12, 0, 0, 0, 250]), Buffer.alloc(64, 0xff)]))
    t.match(await fault, [/RangeError/])
    await other.closed
    await t.rejects(new WorkerEngine(other).subscribe('ns:1'), IpcClosed)
    t.match(await publish('1'), { offset: 1 })
  })

  t.test('whose other end dies fails what waits', async (t) => {
    process.kill(primary.child.pid as number, 'SIGSTOP')
    const waiting = publish('2')
    const failed = t.rejects(waiting, IpcClosed)
    primary.child.kill('SIGKILL')
    await failed
    await ipc.closed
    await t.rejects(publish('3'), IpcClosed)
    t.same(await new WorkerCluster(ipc).survey('info', null), [], 'a fleet never fails')
  })
})
