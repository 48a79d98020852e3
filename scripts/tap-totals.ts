import { Parser, type Result } from 'tap-parser'

/** Test points that stand for themselves: the line that closes a subtest only repeats what its own points said. */
export interface TapTotals {
  passed: number
  failed: number
  skipped: number
  todo: number
}

/** What a report may want to hear while the tests run. */
export interface TapListener {
  /** `path` runs from the test file down to the assertion; `diag` is what tap wrote under it. */
  failure(path: readonly string[], diag: unknown): void
  skip(path: readonly string[], reason: string): void
  /** `output` is what the file printed beside its TAP. */
  fileEnd(name: string, ok: boolean, points: TapTotals, output: string): void
  /** What the runner itself has to say: its own totals, its coverage table. */
  runner(text: string): void
}

const DEAF: TapListener = { failure() {}, skip() {}, fileEnd() {}, runner() {} }

// tap calls a file without a single assertion "skipped"; here it is a test that someone believes to be there
const EMPTY_FILE = 'no tests found'

/**
 * Counts what a tap run says, to its end. The runner's own count is not enough: a file that is killed between two
 * assertions is missing from it. Whatever goes wrong without a failed point of its own counts as one failure.
 */
export const readTap = async (input: AsyncIterable<string>, listener = DEAF): Promise<TapTotals> => {
  const root = new Parser()
  const totals: TapTotals = { passed: 0, failed: 0, skipped: 0, todo: 0 }

  const fail = (path: readonly string[], diag: unknown): void => {
    totals.failed++
    listener.failure(path, diag)
  }

  const countPoint = (path: readonly string[], point: Result): void => {
    if (point.todo) totals.todo++
    else if (point.skip) {
      totals.skipped++
      listener.skip(path, point.skip === true ? '' : point.skip)
    } else if (point.ok) totals.passed++
    else fail(path, point.diag)
  }

  const countSubtest = (path: readonly string[], closing: Result, failedInside: boolean): void => {
    if (path.length === 1 && closing.skip === EMPTY_FILE) fail(path, { reason: EMPTY_FILE })
    else if (closing.skip) countPoint(path, closing)
    else if (!closing.ok && !closing.todo && !failedInside) fail(path, closing.diag)
  }

  const follow = (parser: Parser, parents: readonly string[]): void => {
    let failedBefore = 0
    parser.on('child', (child: Parser) => {
      failedBefore = totals.failed
      follow(child, [...parents, child.name])
    })
    parser.on('assert', (point: Result) => {
      const path = [...parents, point.name]
      if (point.closingTestPoint) countSubtest(path, point, totals.failed > failedBefore)
      else countPoint(path, point)
    })
  }

  follow(root, [])
  followFiles(root, totals, listener)
  root.on('bailout', (reason: string) => fail(['Bail out!'], { reason }))

  for await (const text of input) root.write(text)
  root.end()

  if (totals.failed === 0 && !root.results?.ok) fail(['the test run was cut short'], root.results?.failures)
  if (totals.failed === 0 && totals.passed === 0) fail(['no test ran'], null)
  return totals
}

/** The runner's direct children are the test files. */
const followFiles = (root: Parser, totals: TapTotals, listener: TapListener): void => {
  let file: { readonly before: TapTotals; output: string } | undefined

  root.on('child', () => {
    file = { before: { ...totals }, output: '' }
  })
  root.on('extra', (text: string) => {
    if (file) file.output += text
    else listener.runner(text)
  })
  root.on('comment', (text: string) => listener.runner(text))
  // registered after the counting listener, so the totals already hold the file's closing line
  root.on('assert', (point: Result) => {
    if (file && point.closingTestPoint) {
      const points = difference(totals, file.before)
      listener.fileEnd(point.name, points.failed === 0, points, file.output)
    }
    file = undefined
  })
}

const difference = (now: TapTotals, before: TapTotals): TapTotals => ({
  passed: now.passed - before.passed,
  failed: now.failed - before.failed,
  skipped: now.skipped - before.skipped,
  todo: now.todo - before.todo
})
