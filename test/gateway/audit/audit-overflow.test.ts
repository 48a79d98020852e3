import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { linesOf, numbered, openLog, range, TestFallback } from './audit-fixture.js'

const overflowsIn = (text: string): number[] =>
  linesOf(text)
    .filter((line) => line.includes('audit_overflow'))
    .map((line) => JSON.parse(line.replace('[AUDIT] ', '')).dropped)

t.test('overflow', async (t) => {
  t.test('records beyond ten thousand in the queue are dropped and counted in one line', async (t) => {
    const { log, file, logged } = await openLog(t)
    for (const id of range(0, 10_007)) log.record(numbered(id))
    t.equal(log.pending, 10_000)
    t.equal(log.dropped, 7)
    await log.flush()
    log.record(numbered(10_007))
    await log.close()

    const lines = linesOf(readFileSync(file, 'utf8'))
    t.equal(lines.length, 10_002)
    t.equal(lines[10_000], '{"timestamp":"2026-01-02T03:04:05.678Z","event":"audit_overflow","dropped":7}')
    t.match(lines[10_001], '"requestId":"10007"')
    t.match(logged, [{ level: 50, msg: 'audit records dropped' }])
    t.equal(logged.length, 1)
  })

  t.test('records in flight count, and the loss is reported as soon as there is room', async (t) => {
    const file = join(t.testdir({ blocker: '' }), 'blocker', 'audit.jsonl')
    const { log, fallback } = await openLog(t, { file, maxPendingRecords: 3 })
    const release = fallback.hold()
    const taken = once(fallback, 'taken')
    for (const id of range(0, 3)) log.record(numbered(id))
    await taken
    for (const id of range(3, 5)) log.record(numbered(id))
    t.equal(log.pending, 3)
    t.equal(log.dropped, 2)
    t.same(overflowsIn(fallback.text), [])

    const reported = once(fallback, 'taken')
    release()
    await reported
    t.same(overflowsIn(fallback.text), [2])
    log.record(numbered(5))
    await log.close()
    t.same(overflowsIn(fallback.text), [2], 'only once')
    t.equal(linesOf(fallback.text).length, 5)
  })

  t.test('dropped records are reported before the log is closed', async (t) => {
    const { log, fallback } = await openLog(t, { file: '/dev/full', maxPendingRecords: 2 })
    const release = fallback.hold()
    const taken = once(fallback, 'taken')
    for (const id of range(0, 2)) log.record(numbered(id))
    await taken
    log.record(numbered(2))
    const closed = log.close()
    release()
    await closed
    t.same(overflowsIn(fallback.text), [1])
  })

  t.test('records that neither file nor fallback accepted are reported when one of them works again', async (t) => {
    const folder = t.testdir({ blocker: '' })
    const file = join(folder, 'blocker', 'audit.jsonl')
    const { log, fallback, clock, logged } = await openLog(t, { file })
    fallback.broken = true
    for (const id of range(0, 3)) {
      log.record(numbered(id))
      await log.flush()
    }
    t.equal(log.dropped, 3)
    t.equal(log.pending, 0)

    rmSync(join(folder, 'blocker'))
    clock.ms += 60_000
    log.record(numbered(3))
    await log.close()
    const lines = linesOf(readFileSync(file, 'utf8'))
    t.match(lines, [/"requestId":"3"/, /"audit_overflow","dropped":3/])
    t.equal(lines.length, 2)
    t.equal(logged.filter(({ level }) => level === 50).length, 1, 'the log said so once')
  })

  t.test('records are counted as dropped if the fallback throws', async (t) => {
    const { log, fallback } = await openLog(t, { file: '/dev/full' })
    t.intercept(fallback, 'write', {
      value: () => {
        throw new Error('ENOSPC')
      }
    })
    log.record(numbered(0))
    await log.close()
    t.doesNotThrow(() => log.record(numbered(1)))
    await log.flush()
    t.equal(log.dropped, 2)
  })

  t.test('records are counted as dropped if the fallback does not call back after a failure', async (t) => {
    const fallback = new TestFallback({ autoDestroy: false })
    const { log } = await openLog(t, { file: '/dev/full', fallback })
    fallback.broken = true
    for (const id of range(0, 2)) {
      log.record(numbered(id))
      await log.flush()
    }
    await log.close()
    t.equal(log.dropped, 2)
  })
})
