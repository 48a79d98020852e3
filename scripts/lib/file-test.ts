import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Base, t as processTest, type Test, TestBase } from 'tap'

/**
 * The test to which the file that runs now adds its tests. Compiled test files import it as `tap`: `scripts/test.ts` places
 * a package of that name beside them. With tap's own `t`, the files of one process would share their teardown and timeout.
 */
let fileTest: Test = processTest

export { fileTest as t }

/** For a file. The longest takes five minutes on a quiet machine, and ten at a load average of 20 on two cores. */
const TIMEOUT_MS = 1_200_000

processTest.setTimeout(0)

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
  const results = await processTest.test(file, { timeout: TIMEOUT_MS }, async (t) => {
    fileTest = t
    await import(pathToFileURL(resolve(file)).href)
  })
  if (results?.count === 0) processTest.fail(`${file} has no tests`)
}
