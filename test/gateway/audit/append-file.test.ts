import { appendFileSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { AppendFile } from '../../../src/gateway/audit.js'
import { withFileSizeLimit } from './file-size-limit.js'

const openFile = async (t: Test, content?: string) => {
  const path = join(t.testdir(), 'lines')
  if (content !== undefined) writeFileSync(path, content)
  const file = new AppendFile(path)
  await file.open()
  t.teardown(() => file.close())
  return { file, path, read: () => readFileSync(path, 'utf8') }
}

// The prototype is the only way to the handles that the code under test opens for itself.
const interceptWrites = async (t: Test, take: (length: number) => number): Promise<void> => {
  const probe = await open('/dev/null', 'a')
  const prototype = Object.getPrototypeOf(probe) as FileHandle
  await probe.close()
  const write = prototype.write as (...args: unknown[]) => Promise<{ bytesWritten: number }>
  t.intercept(prototype, 'write', {
    value: function (this: FileHandle, bytes: Buffer, offset: number, length: number) {
      return write.call(this, bytes, offset, take(length), null)
    }
  })
}

t.test('an append file', async (t) => {
  t.test('makes its folder, and a file that only its owner writes and its group reads', async (t) => {
    const path = join(t.testdir(), 'a', 'b', 'lines')
    const file = new AppendFile(path)
    await file.open()
    await file.close()
    t.equal(statSync(path).mode & 0o777, 0o640)
    t.equal(statSync(join(path, '..')).mode & 0o007, 0, 'the folder is closed to others')
  })

  t.test('adds to what is there', async (t) => {
    const { file, read } = await openFile(t, 'old\n')
    t.same(await file.append(['a', 'b']), { written: 2, failure: undefined })
    t.same(await file.append(['c']), { written: 1, failure: undefined })
    t.equal(read(), 'old\na\nb\nc\n')
  })

  t.test('goes to the end even when another process wrote meanwhile', async (t) => {
    const { file, path, read } = await openFile(t)
    await file.append(['a'])
    appendFileSync(path, 'other\n')
    await file.append(['b'])
    t.equal(read(), 'a\nother\nb\n')
  })

  t.test('begins on a new line where a process died inside its last one', async (t) => {
    const { file, read } = await openFile(t, 'old\n{"half')
    await file.append(['a'])
    await file.append(['b'])
    t.equal(read(), 'old\n{"half\na\nb\n')
  })

  t.test('follows its path when opened again', async (t) => {
    const { file, path, read } = await openFile(t)
    await file.append(['a'])
    renameSync(path, `${path}.1`)
    await file.append(['b'])
    await file.open()
    await file.append(['c'])
    t.equal(readFileSync(`${path}.1`, 'utf8'), 'a\nb\n')
    t.equal(read(), 'c\n')
  })

  t.test('goes on until all bytes are written when the system takes a few at a time', async (t) => {
    const { file, read } = await openFile(t)
    await interceptWrites(t, (length) => Math.min(length, 3))
    t.same(await file.append(['first line', 'zweite Zeile: äöü', 'third']), { written: 3, failure: undefined })
    t.equal(read(), 'first line\nzweite Zeile: äöü\nthird\n')
  })

  t.test('fails rather than spins when the system takes nothing', async (t) => {
    const { file } = await openFile(t)
    await interceptWrites(t, () => 0)
    const { written, failure } = await file.append(['a'])
    t.equal(written, 0)
    t.match(failure, { message: /no more bytes/ })
    t.equal(file.isOpen, false)
  })

  t.test('refuses to append while it is not open', async (t) => {
    t.match(await new AppendFile('/dev/null').append(['a']), { written: 0, failure: Error })
  })

  const limits: Array<[limit: number, written: number, then: string, why: string]> = [
    [0, 0, 'retry\n', 'nothing fits'],
    [3, 0, 'aaa\nretry\n', 'the first line is cut'],
    [4, 1, 'aaaa\nretry\n', 'only the line break of the first is missing'],
    [5, 1, 'aaaa\nretry\n', 'the first line fits exactly'],
    [8, 1, 'aaaa\nbbb\nretry\n', 'the second line is cut'],
    [10, 2, 'aaaa\nbbbb\nretry\n', 'two lines fit'],
    [14, 3, 'aaaa\nbbbb\ncccc\nretry\n', 'only the last line break is missing']
  ]
  for (const [limit, expected, then, why] of limits) {
    t.test(`counts ${expected} whole lines when ${why}, and never glues the next one on`, async (t) => {
      const { file, read } = await openFile(t)
      const { written, failure } = await withFileSizeLimit(limit, () => file.append(['aaaa', 'bbbb', 'cccc']))
      t.equal(written, expected)
      t.match(failure, { code: 'EFBIG' })
      t.equal(file.isOpen, false)

      await file.open()
      t.same(await file.append(['retry']), { written: 1, failure: undefined })
      t.equal(read(), then)
    })
  }

  const brokenRepairs: Array<[limit: number, then: string, why: string]> = [
    [5, 'half\nretry\n', 'only the break before it was written'],
    [8, 'half\naaa\nretry\n', 'the break before it and a part of it were written']
  ]
  for (const [limit, then, why] of brokenRepairs) {
    t.test(`does not count a line when ${why}`, async (t) => {
      const { file, read } = await openFile(t, 'half')
      const appended = await withFileSizeLimit(limit, () => file.append(['aaaa']))
      t.match(appended, { written: 0, failure: { code: 'EFBIG' } })
      await file.open()
      await file.append(['retry'])
      t.equal(read(), then)
    })
  }
})
