import { existsSync, readFileSync, renameSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { idsInFile, linesOf, numbered, openLog, range, rejection } from './audit-fixture.js'

t.test('an audit log', async (t) => {
  t.test('both kinds of rejection are appended with the time of the call, and nothing is logged', async (t) => {
    const { log, file, fallback, clock, logged } = await openLog(t)
    log.record(rejection({ event: 'unauthorized_access' }))
    clock.ms += 1000
    log.record(rejection({ event: 'forbidden_access', status: 403 }))
    await log.close()

    const records = linesOf(readFileSync(file, 'utf8')).map((line) => JSON.parse(line))
    t.match(records, [
      { timestamp: '2026-01-02T03:04:05.678Z', event: 'unauthorized_access', status: 401 },
      { timestamp: '2026-01-02T03:04:06.678Z', event: 'forbidden_access', status: 403 }
    ])
    t.equal(fallback.text, '')
    t.same(logged, [])
  })

  t.test('a record is one line with any header value', async (t) => {
    const { log, file } = await openLog(t)
    log.record(rejection({ userAgent: 'x\r\n{"event":"forged"}\u2028\u0085\0' }))
    log.record(rejection({ userAgent: 'x'.repeat(102_400) }))
    await log.close()
    t.equal(readFileSync(file, 'utf8').split(/[\r\n\u0085\u2028\u2029]/).length, 3, 'two lines and the end')
  })

  t.test('recording does not wait for the write', async (t) => {
    const { log, file } = await openLog(t)
    log.record(numbered(0))
    t.equal(log.pending, 1)
    t.same(idsInFile(file), [])
    await log.flush()
    t.equal(log.pending, 0)
    t.same(idsInFile(file), [0])
  })

  t.test('records of one event loop turn are written in order', async (t) => {
    const { log, file } = await openLog(t)
    for (const id of range(0, 9000)) log.record(numbered(id))
    await log.close()
    t.same(idsInFile(file), range(0, 9000))
  })

  t.test('records that arrive during a write are written in order', async (t) => {
    const { log, file } = await openLog(t)
    for (const id of range(0, 500)) {
      log.record(numbered(id))
      if (id % 3 === 0) await nextTurn()
    }
    await log.close()
    t.same(idsInFile(file), range(0, 500))
  })

  t.test('an address has a limited number of records without a user in a minute', async (t) => {
    const { log, file, clock } = await openLog(t, { anonymousPerMinute: 3 })
    const records = () => linesOf(readFileSync(file, 'utf8')).map((line) => JSON.parse(line))
    const count = async (): Promise<number> => {
      await log.flush()
      return records().length
    }
    for (const _ of range(0, 10)) log.record(rejection({ ip: '203.0.113.9' }))
    t.equal(await count(), 3)
    log.record(rejection({ ip: '203.0.113.10' }))
    t.equal(await count(), 4, 'another address')
    for (const id of range(0, 10)) log.record(rejection({ ip: `2001:db8:1:2::${id}` }))
    t.equal(await count(), 7, 'an IPv6 network')
    for (const _ of range(0, 5)) log.record(rejection({ user: { id: 'ada', email: null, role: 'user' } }))
    t.equal(await count(), 12, 'records with a user')
    t.notMatch(readFileSync(file, 'utf8'), 'omitted')
    clock.ms += 60_000
    for (const _ of range(0, 2)) log.record(rejection({ ip: '203.0.113.9' }))
    t.equal(await count(), 14)
    t.match(records().at(-2), { ip: '203.0.113.9', omitted: 7 })
    t.equal(records().at(-1).omitted, undefined)
  })

  t.test('close can be called repeatedly', async (t) => {
    const { log, file } = await openLog(t)
    log.record(numbered(0))
    await Promise.all([log.close(), log.close(), log.reopen(), log.flush()])
    t.same(idsInFile(file), [0])
  })

  t.test('reopen after close has no effect', async (t) => {
    const { log, file } = await openLog(t)
    await log.close()
    renameSync(file, `${file}.1`)
    await log.reopen()
    t.equal(existsSync(file), false)
  })

  t.test('records after close go to the fallback', async (t) => {
    const { log, file, fallback } = await openLog(t)
    log.record(numbered(0))
    const closed = log.close()
    log.record(numbered(1))
    await closed
    log.record(numbered(2))
    t.same(idsInFile(file), [0])
    t.same(fallback.ids, [1, 2], 'without waiting for anything')
  })
})

t.test('rotation', async (t) => {
  t.test('reopen after a rotation creates a new file with the same name', async (t) => {
    const { log, file, logged } = await openLog(t)
    log.record(numbered(0))
    await log.flush()
    renameSync(file, `${file}.1`)
    log.record(numbered(1))
    await log.flush()
    await log.reopen()
    log.record(numbered(2))
    await log.close()
    t.same(idsInFile(`${file}.1`), [0, 1])
    t.same(idsInFile(file), [2])
    t.same(logged, [])
  })

  t.test('rotation during continuous writes loses, duplicates and reorders no line', async (t) => {
    const total = 20_000
    const { log, file, fallback } = await openLog(t)
    const rotated: string[] = []
    let writing = true

    const write = async () => {
      for (const id of range(0, total)) {
        log.record(numbered(id))
        if (id % 20 === 0) await nextTurn()
        // Otherwise the queue could overflow on a slow disk.
        if (log.pending > 5000) await log.flush()
      }
      writing = false
    }
    const rotate = async () => {
      while (writing) {
        const old = `${file}.${rotated.length}`
        renameSync(file, old)
        rotated.push(old)
        await log.reopen()
      }
    }
    await Promise.all([write(), rotate()])
    await log.close()

    const perFile = [...rotated, file].map(idsInFile)
    t.ok(perFile.filter((ids) => ids.length > 0).length > 10, `lines are spread over ${perFile.length} files`)
    t.same(perFile.flat(), range(0, total))
    t.equal(fallback.text, '')
    t.equal(log.dropped, 0)
  })
})
