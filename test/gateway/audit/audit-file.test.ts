import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AuditFile } from '../../../src/gateway/audit/audit-file.js'
import { withFileSizeLimit } from './file-size-limit.js'

const openFile = async (t: Test, content?: string) => {
  const path = join(t.testdir(), 'lines')
  if (content !== undefined) writeFileSync(path, content)
  const file = new AuditFile(path)
  await file.open()
  t.teardown(() => file.close())
  return { file, path, read: () => readFileSync(path, 'utf8') }
}

t.test('the audit file', async (t) => {
  t.test('the audit file is created with mode 0640 in a folder without access for others', async (t) => {
    const path = join(t.testdir(), 'a', 'b', 'lines')
    const file = new AuditFile(path)
    await file.open()
    await file.close()
    t.equal(statSync(path).mode & 0o777, 0o640)
    t.equal(statSync(join(path, '..')).mode & 0o007, 0, 'folder')
  })

  t.test('the audit file keeps its lines when it is opened', async (t) => {
    const { file, read } = await openFile(t, 'old\n')
    t.same(await file.append(['a', 'b']), { written: 2, error: null })
    t.same(await file.append(['c']), { written: 1, error: null })
    t.equal(read(), 'old\na\nb\nc\n')
  })

  t.test('lines are appended after those of another process', async (t) => {
    const { file, path, read } = await openFile(t)
    await file.append(['a'])
    appendFileSync(path, 'other\n')
    await file.append(['b'])
    t.equal(read(), 'a\nother\nb\n')
  })

  t.test('a file that ends in an incomplete line gets a line break first', async (t) => {
    const { file, read } = await openFile(t, 'old\n{"half')
    await file.append(['a'])
    await file.append(['b'])
    t.equal(read(), 'old\n{"half\na\nb\n')
  })

  t.test('opening again switches to the file that the path names now', async (t) => {
    const { file, path, read } = await openFile(t)
    await file.append(['a'])
    renameSync(path, `${path}.1`)
    await file.append(['b'])
    await file.open()
    await file.append(['c'])
    t.equal(readFileSync(`${path}.1`, 'utf8'), 'a\nb\n')
    t.equal(read(), 'c\n')
  })

  t.test('a closed audit file rejects lines', async (t) => {
    t.match(await new AuditFile('/dev/null').append(['a']), { written: 0, error: Error })
  })

  const limits: Array<[limit: number, written: number, then: string, title: string]> = [
    [0, 0, 'retry\n', 'nothing fits'],
    [3, 0, 'aaa\nretry\n', 'the first line is incomplete'],
    [4, 1, 'aaaa\nretry\n', 'only the line break of the first is missing'],
    [5, 1, 'aaaa\nretry\n', 'the first line fits exactly'],
    [8, 1, 'aaaa\nbbb\nretry\n', 'the second line is incomplete'],
    [10, 2, 'aaaa\nbbbb\nretry\n', 'two lines fit'],
    [14, 3, 'aaaa\nbbbb\ncccc\nretry\n', 'only the last line break is missing']
  ]
  for (const [limit, expected, then, title] of limits) {
    t.test(`${expected} lines are reported as written and the next line is intact if ${title}`, async (t) => {
      const { file, read } = await openFile(t)
      const { written, error } = await withFileSizeLimit(limit, () => file.append(['aaaa', 'bbbb', 'cccc']))
      t.equal(written, expected)
      t.match(error, { code: 'EFBIG' })
      t.equal(file.isOpen, false)

      await file.open()
      t.same(await file.append(['retry']), { written: 1, error: null })
      t.equal(read(), then)
    })
  }

  const brokenRepairs: Array<[limit: number, then: string, title: string]> = [
    [5, 'half\nretry\n', 'only the break before it was written'],
    [8, 'half\naaa\nretry\n', 'the break before it and a part of it were written']
  ]
  for (const [limit, then, title] of brokenRepairs) {
    t.test(`no line is reported as written if ${title}`, async (t) => {
      const { file, read } = await openFile(t, 'half')
      const appended = await withFileSizeLimit(limit, () => file.append(['aaaa']))
      t.match(appended, { written: 0, error: { code: 'EFBIG' } })
      await file.open()
      await file.append(['retry'])
      t.equal(read(), then)
    })
  }
})
