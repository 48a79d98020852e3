import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import t from 'tap'
import { PLAIN_PUBLICATION } from '../../../src/relay/core/publish/publish.js'
import { SurveyHandlers } from '../../../src/relay/core/surveys.js'
import { type FrameReader, FrameSplitter, FrameWriter } from '../../../src/relay/workers/frames.js'
import { IpcClosed, IpcConnection, NO_FIELDS } from '../../../src/relay/workers/ipc.js'
import { WorkerCluster } from '../../../src/relay/workers/worker-cluster.js'
import { WorkerEngine } from '../../../src/relay/workers/worker-engine.js'
import { startPrimary } from '../../helper/primary-process.js'
import { required } from '../../helper/required.js'

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
  frame.uint32(),
  frame.text(),
  frame.textOrNull(),
  frame.textOrNull(),
  frame.number(),
  frame.byte()
]
const EXPECTED = TEXTS.map((text, index) => [7, index, text, null, text, index / 3, 255])

t.test('frames', async (t) => {
  for (const size of [1, 3, 4, 5, 9, 64 * 1024, Number.MAX_SAFE_INTEGER]) {
    t.test(`frames are read as they were written, in chunks of ${size} bytes`, async (t) => {
      const read: unknown[] = []
      const splitter = new FrameSplitter((frame) => read.push(readAll(frame)))
      const bytes = write()
      for (let at = 0; at < bytes.length; at += size) splitter.receive(bytes.subarray(at, at + size))
      t.same(read, EXPECTED)
    })
  }

  t.test('reading beyond the end of a frame throws', async (t) => {
    const out = new FrameWriter()
    out.begin(7, 1).text('abc')
    out.finish()
    const splitter = new FrameSplitter((frame) => {
      t.equal(frame.byte(), 7)
      frame.uint32()
      frame.text()
      t.throws(() => frame.byte(), RangeError)
    })
    splitter.receive(out.take())
    t.throws(() => splitter.receive(Buffer.alloc(16, 0xff)), RangeError)
  })
})

t.test('a request is rejected, and its channel closed, if the reply cannot be read', async (t) => {
  const [here, there] = duplexPair()
  const malformed: unknown[] = []
  const ipc = new IpcConnection(here, (error) => malformed.push(error))
  const other = new IpcConnection(there, (error) => t.fail(String(error)))
  other.onRequest({ readMetrics: () => NO_FIELDS })
  await t.rejects(
    ipc.request('readMetrics', NO_FIELDS, (fields) => fields.text()),
    IpcClosed
  )
  t.match(malformed, [RangeError])
  await ipc.closed
})

t.test('an IPC connection', async (t) => {
  const primary = await startPrimary(t)
  const [ipc, other] = primary.ipcConnections
  const engine = new WorkerEngine(ipc)
  const publish = (data: string): Promise<unknown> =>
    Promise.resolve(engine.publish('ns:1', { ...PLAIN_PUBLICATION, data }, HISTORY))

  t.test('40 large publications arrive in order', async (t) => {
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

  t.test('a survey completes without a worker that does not reply', async (t) => {
    await primary.command({ kind: 'reset', surveyTimeoutMs: 200 })
    const handlersWith = (handler: () => Promise<boolean>): SurveyHandlers => {
      const handlers = new SurveyHandlers()
      handlers.set('emulate', handler)
      return handlers
    }
    const cluster = new WorkerCluster(ipc)
    await cluster.start(
      'here',
      handlersWith(async () => true)
    )
    await new WorkerCluster(other).start(
      'silent',
      handlersWith(() => new Promise(() => undefined))
    )
    const params = { session: 's', data: '' }
    t.same(await cluster.survey('emulate', params), [{ node: 'here', result: true }])
    t.equal(await cluster.surveyNode('silent', 'emulate', params), null)
    t.equal(await cluster.surveyNode('nowhere', 'emulate', params), null)
    t.same(await Promise.all(['here', 'silent', 'nowhere'].map((node) => cluster.hasNode(node))), [true, true, false])
    t.equal(cluster.size, 2)
    await t.rejects(
      ipc.request(
        'stop',
        () => undefined,
        () => undefined
      ),
      'a request without a handler fails'
    )
  })

  t.test('a malformed frame closes its channel and no other', async (t) => {
    const reported = once(primary.child, 'message')
    const stream = primary.streams[1]
    // An unknown kind, and then a frame longer than the maximum.
    stream.write(Buffer.concat([Buffer.from([12, 0, 0, 0, 250]), Buffer.alloc(64, 0xff)]))
    t.match(await reported, [/RangeError/])
    await other.closed
    await t.rejects(new WorkerEngine(other).subscribe('ns:1'), IpcClosed)
    t.match(await publish('1'), { offset: 1 })
  })

  t.test('pending requests fail when the other process dies', async (t) => {
    process.kill(required(primary.child.pid), 'SIGSTOP')
    const waiting = publish('2')
    const failed = t.rejects(waiting, IpcClosed)
    primary.child.kill('SIGKILL')
    await failed
    await ipc.closed
    await t.rejects(publish('3'), IpcClosed)
    t.same(await new WorkerCluster(ipc).survey('info', null), [], 'a survey without the primary has no results')
  })
})
