import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Base, t as processTest, type Test, TestBase } from 'tap'

/**
 * The test to which the file that runs now adds its tests. Compiled test files import it as `tap`: `scripts/test.ts` places
 * a package of that name beside them. With tap's own `t`, the files of one process would share their teardown and timeout.
 */
let fileTest: Test = processTest

export { fileTest as t }

/** The longest file takes two minutes on a quiet machine, and ten at a load average of 20 on two cores. */
const FILE_TIMEOUT_MS = Number(process.env.FILE_TIMEOUT_SECONDS ?? 900) * 1000

/** For a loop that never ends, and for a process that does not end after its last file. A minute is too short on a busy machine. */
const GRACE_MS = 180_000

/**
 * tap finds the test of an uncaught error by a hook that observes every promise, which costs a tenth of the CPU time. Here
 * such an error fails the file that runs. A test has the hook from its creation, so also while it waits for its turn.
 */
const removeHook = (test: Base): void => {
  test.hookDomain.destroy()
  if (test instanceof TestBase) test.on('subtestAdd', removeHook)
}
// Otherwise tap pipes to the standard output with the first output of a test, and has the hook of the process from then on.
processTest.pipe(process.stdout)
processTest.hook.onDestroy?.()
removeHook(processTest)
process.on('uncaughtException', (error) => fileTest.threw(error))

/** Runs a compiled test file in this process. Resolves when its tests and its teardown have ended. */
export const runTestFile = async (file: string): Promise<void> => {
  const name = file.replace(/^\.test-build\/(.*)\.js$/, '$1.ts')
  // tap passes this on to the process that started this one, which kills it.
  processTest.setTimeout(FILE_TIMEOUT_MS + GRACE_MS)
  const results = await processTest.test(name, { timeout: FILE_TIMEOUT_MS }, async (t) => {
    fileTest = t
    await import(pathToFileURL(resolve(file)).href)
  })
  if (results?.count === 0) processTest.fail(`${name} has no tests`)
  processTest.setTimeout(GRACE_MS)
}
