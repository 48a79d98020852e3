import fc from 'fast-check'
import { environment } from './environment.js'

/** At least so many, if the test does not state fewer. */
const MIN_RUNS = 50

/**
 * Checks a property as one assertion of `t`. The property throws or returns false where it does not hold, so that
 * fast-check sees the failure and shrinks the counterexample; an assertion of `t` inside it would hide the failure.
 */
export const checkProperty = async <T>(
  t: { equal(found: unknown, wanted: unknown, message: string): boolean },
  property: fc.IRawProperty<T>,
  parameters: fc.Parameters<T> = {}
): Promise<void> => {
  const { numRuns = 100 } = parameters
  const runs = Math.max(Math.min(numRuns, MIN_RUNS), Math.round(numRuns * environment.propertyShare))
  const result = await fc.check(property, { ...parameters, numRuns: runs })
  const report = result.failed ? fc.defaultReportMessage(result) : null
  t.equal(report, null, `the property holds for ${result.numRuns} generated inputs`)
}
