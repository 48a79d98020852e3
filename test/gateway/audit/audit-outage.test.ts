import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { idsIn, idsInFile, linesOf, numbered, openLog, range } from './audit-fixture.js'
import { withFileSizeLimit } from './file-size-limit.js'
import { readOnlyFolder } from './read-only-folder.js'

const WARNED = 'audit file not writable, records go to stderr'
const BACK = 'audit file writable again'

t.test('an audit file that cannot be opened', async (t) => {
  const locations: Array<[code: string, title: string, location: (t: Test) => string]> = [
    ['ENOTDIR', 'is in a regular file', (t) => join(t.testdir({ blocker: '' }), 'blocker', 'audit.jsonl')],
    ['ENOTDIR', 'is below a regular file', (t) => join(t.testdir({ blocker: '' }), 'blocker', 'logs', 'audit.jsonl')],
    ['EISDIR', 'is a folder', (t) => join(t.testdir({ blocker: {} }), 'blocker')],
    ['ENOENT', 'is in a folder that cannot be created', () => '/proc/no-such-folder/audit.jsonl'],
    ['ELOOP', 'is a link to itself', (t) => join(t.testdir({ loop: t.fixture('symlink', 'loop') }), 'loop')],
    ['ENAMETOOLONG', 'has a name that is too long', (t) => join(t.testdir(), 'a'.repeat(300))]
  ]
  for (const [code, title, location] of locations) {
    t.test(
      `the outage is logged once and every record goes to the fallback if the file ${title} (${code})`,
      async (t) => {
        const { log, fallback, logged } = await openLog(t, { file: location(t) })
        t.match(logged, [{ level: 40, msg: WARNED, err: { code } }])
        t.equal(log.fallback, true)

        for (const id of range(0, 4)) {
          log.record(numbered(id))
          await log.flush()
        }
        await log.close()
        t.same(fallback.ids, range(0, 4))
        t.equal(logged.length, 1)
      }
    )
  }

  t.test('each line in the fallback carries the marker and one record', async (t) => {
    const { log, fallback } = await openLog(t, { file: '/proc/no-such-folder/audit.jsonl' })
    log.record(numbered(0))
    log.record(numbered(1))
    await log.close()
    t.match(linesOf(fallback.text), [/^\[AUDIT\] \{"timestamp":.*\}$/, /^\[AUDIT\] \{"timestamp":.*\}$/])
  })

  t.test('records go to the fallback while the folder is read-only, and then to the file', async (t) => {
    const { folder, code, makeWritable } = readOnlyFolder(t)
    const file = join(folder, 'logs', 'audit.jsonl')
    const { log, fallback, clock, logged } = await openLog(t, { file })
    log.record(numbered(0))
    await log.flush()
    makeWritable()
    log.record(numbered(1))
    await log.flush()
    clock.ms += 60_000
    log.record(numbered(2))
    await log.close()

    t.match(logged, [{ msg: WARNED, err: { code } }, { msg: BACK }])
    t.same(fallback.ids, [0, 1])
    t.same(idsInFile(file), [2])
  })
})

t.test('when a write fails', async (t) => {
  t.test('records go to the fallback while the disk is full (ENOSPC), each once and in order', async (t) => {
    const { log, fallback, logged } = await openLog(t, { file: '/dev/full' })
    t.same(logged, [], 'a full disk opens without complaint')
    t.equal(log.fallback, false)

    for (const id of range(0, 50)) log.record(numbered(id))
    await log.flush()
    for (const id of range(50, 60)) log.record(numbered(id))
    await log.close()
    t.same(fallback.ids, range(0, 60))
    t.equal(log.fallback, true)
    t.match(logged, [{ level: 40, msg: WARNED, err: { code: 'ENOSPC' } }])
    t.equal(logged.length, 1)
  })

  t.test('after a partial write, that record and later ones go to the fallback, each once', async (t) => {
    const { log, file, fallback, clock } = await openLog(t)
    await withFileSizeLimit(1000, async () => {
      for (const id of range(0, 10)) log.record(numbered(id))
      await log.flush()
    })
    const inFile = linesOf(readFileSync(file, 'utf8')).length
    t.equal(statSync(file).size, 1000, 'the file ends inside a line')
    t.same(fallback.ids, range(inFile, 10))

    clock.ms += 60_000
    log.record(numbered(10))
    await log.close()
    const lines = linesOf(readFileSync(file, 'utf8'))
    t.same(idsIn(`${lines.slice(0, inFile).join('\n')}\n`), range(0, inFile))
    t.throws(() => JSON.parse(lines[inFile] ?? ''), 'the half line stands alone')
    t.same(idsIn(`${lines.slice(inFile + 1).join('\n')}\n`), [10])
  })

  t.test('failed retries belong to the same outage, which is logged once', async (t) => {
    const { log, fallback, clock, logged } = await openLog(t, { file: '/dev/full' })
    for (const id of range(0, 5)) {
      log.record(numbered(id))
      await log.flush()
      clock.ms += 60_000
    }
    t.same(fallback.ids, range(0, 5))
    t.equal(logged.length, 1)
  })
})

t.test('retries after an outage of the audit file', async (t) => {
  const broken = async (t: Test) => {
    const file = join(t.testdir({ file: {} }), 'file')
    const opened = await openLog(t, { file })
    opened.log.record(numbered(0))
    await opened.log.flush()
    rmdirSync(file)
    return { ...opened, file }
  }

  const waits: Array<[ms: number, inFile: number[], inFallback: number[], title: string]> = [
    [59_999, [], [0, 1], 'the audit file is not opened again within 60 s'],
    [60_000, [1], [0], 'the first record after 60 s opens the audit file again'],
    [-3_600_000, [1], [0], 'a clock that was set back by an hour does not delay the retry']
  ]
  for (const [ms, inFile, inFallback, title] of waits) {
    t.test(title, async (t) => {
      const { log, file, fallback, clock } = await broken(t)
      clock.ms += ms
      log.record(numbered(1))
      await log.close()
      if (inFile.length === 0) t.throws(() => readFileSync(file), { code: 'ENOENT' })
      else t.same(idsInFile(file), inFile)
      t.same(fallback.ids, inFallback)
    })
  }

  t.test('a recovery is logged once, and the next outage is logged again', async (t) => {
    const { log, file, fallback, clock, logged } = await broken(t)
    clock.ms += 60_000
    for (const id of [1, 2]) {
      log.record(numbered(id))
      await log.flush()
    }
    t.equal(log.fallback, false)
    t.same(idsInFile(file), [1, 2])

    rmSync(file)
    mkdirSync(file)
    await log.reopen()
    log.record(numbered(3))
    await log.flush()
    t.same(fallback.ids, [0, 3])
    t.same(
      logged.map(({ level, msg }) => [level, msg]),
      [
        [40, WARNED],
        [30, BACK],
        [40, WARNED]
      ]
    )
  })

  t.test('reopen retries the file at once', async (t) => {
    const { log, file, fallback } = await broken(t)
    await log.reopen()
    log.record(numbered(1))
    await log.close()
    t.same(idsInFile(file), [1])
    t.same(fallback.ids, [0])
  })
})
