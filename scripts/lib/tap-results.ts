import { Parser, type Result } from 'tap-parser'

/** A test is a `t.test` without further tests inside, or a file that only has assertions. */
export interface TestTotals {
  passed: number
  failed: number
  skipped: number
  todo: number
}

export const noTests = (): TestTotals => ({ passed: 0, failed: 0, skipped: 0, todo: 0 })

/** Receives events while the tests run. */
export interface TestListener {
  /** `path` leads from the test file to the assertion; `diag` is the YAML block that tap wrote about it. */
  failure(path: readonly string[], diag: unknown): void
  skip(path: readonly string[], reason: string): void
  /** `output` is the text that the file printed besides its TAP. */
  fileEnd(name: string, totals: TestTotals, output: string): void
  /** Comments of the runner: its totals and its coverage table. */
  runner(text: string): void
}

// tap marks a file without a single assertion as skipped. Here it is an error: its author expects it to test something.
const EMPTY_FILE = 'no tests found'

/**
 * Counts the tests of a tap run. tap's own totals count assertions, and do not include a file that was killed between two
 * assertions: an error outside of all tests counts as one failed test here.
 */
export const readTap = async (input: AsyncIterable<string>, listener: TestListener): Promise<TestTotals> => {
  const root = new Parser()
  const totals = noTests()
  let reported = 0

  const report = (path: readonly string[], diag: unknown): void => {
    reported++
    listener.failure(path, diag)
  }

  const skip = (path: readonly string[], { skip }: Result): void => {
    totals.skipped++
    listener.skip(path, skip === true ? '' : skip || '')
  }

  const follow = (parser: Parser, parents: readonly string[]): Group => {
    const group: Group = { tests: 0, failedBefore: totals.failed, reportedBefore: reported }
    let last = group
    parser.on('child', (child: Parser) => {
      group.tests++
      last = follow(child, [...parents, child.name])
    })
    parser.on('assert', (point: Result) => {
      const path = [...parents, point.name]
      if (point.todo) totals.todo++
      else if (point.skip && !(path.length === 1 && point.skip === EMPTY_FILE)) skip(path, point)
      else if (point.closingTestPoint) endTest(path, point, last)
      else if (!point.ok) {
        report(path, point.diag)
        // Outside of all files, such as the timeout of a file: there is no test that could count as failed.
        if (parents.length === 0) totals.failed++
      }
    })
    return group
  }

  const endTest = (path: readonly string[], point: Result, { tests, failedBefore, reportedBefore }: Group): void => {
    const isOk = point.ok && !point.skip && reported === reportedBefore
    if (isOk && tests === 0) totals.passed++
    if (isOk) return
    if (tests === 0 || totals.failed === failedBefore) totals.failed++
    if (reported === reportedBefore) report(path, point.skip ? { reason: point.skip } : point.diag)
  }

  follow(root, [])
  followFiles(root, totals, listener)
  root.on('bailout', (reason: string) => {
    totals.failed++
    report(['Bail out!'], { reason })
  })

  for await (const text of input) root.write(text)
  root.end()

  const isIncomplete = !root.results?.ok || totals.passed === 0
  if (totals.failed === 0 && isIncomplete) {
    totals.failed++
    report([root.results?.ok ? 'no test ran' : 'the test run ended early'], root.results?.failures)
  }
  return totals
}

/** The tests inside a test, a file or the run. */
interface Group {
  tests: number
  readonly failedBefore: number
  readonly reportedBefore: number
}

/** The runner's direct children are the test files. */
const followFiles = (root: Parser, totals: TestTotals, listener: TestListener): void => {
  let file: { readonly before: TestTotals; output: string } | undefined

  root.on('child', () => {
    file = { before: { ...totals }, output: '' }
  })
  root.on('extra', (text: string) => {
    if (file) file.output += text
    else listener.runner(text)
  })
  root.on('comment', (text: string) => listener.runner(text))
  // Registered after the listener that counts, so that the totals include the file's closing line.
  root.on('assert', (point: Result) => {
    if (file && point.closingTestPoint) listener.fileEnd(point.name, difference(totals, file.before), file.output)
    file = undefined
  })
}

const difference = (now: TestTotals, before: TestTotals): TestTotals => ({
  passed: now.passed - before.passed,
  failed: now.failed - before.failed,
  skipped: now.skipped - before.skipped,
  todo: now.todo - before.todo
})
