import { createContext, Script } from 'node:vm'
import { linearRegExpOfJavaScript, type Pattern } from '../shared/linear-regexp.js'

/** Thrown during a validation that would take too long. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded'
}

/** The time of this thread, which does not pass while another process has the processor. */
const PATTERN_MS = 250
/** The size of a pattern times the length of a text. So many steps take at most some 25 ms. */
const MANY_STEPS = 500_000

/**
 * Limits the validation of one request at a time. The schemas come from an API description, and a few bytes of a request can
 * make the validation of some schemas take years. Patterns take linear time, but large ones in long texts still seconds.
 */
export class ValidationBudget {
  readonly #maxEvaluations: number
  readonly #patterns = new Map<string, Pattern>()
  #evaluations = 0
  /** Since the time was last compared with the limit. */
  #steps = 0
  /** Null before the first comparison: most requests have few steps. */
  #startedAt: Times | null = null

  constructor(maxEvaluations: number) {
    this.#maxEvaluations = maxEvaluations
  }

  /** Called once for each request. */
  reset(): void {
    this.#evaluations = 0
    this.#steps = 0
    this.#startedAt = null
  }

  /** Counts the evaluation of a schema with references. Always true: it serves as a keyword. */
  countEvaluation(): true {
    this.#evaluations += 1
    if (this.#evaluations > this.#maxEvaluations) throw new BudgetExceeded('too many evaluations')
    return true
  }

  /** A pattern in the form that Ajv uses. */
  pattern(source: string): { test(text: string): boolean; toString(): string } {
    return { test: (text) => this.#test(source, text), toString: () => source }
  }

  #test(source: string, text: string): boolean {
    const pattern = this.#patterns.get(source) ?? linearRegExpOfJavaScript(source)
    this.#patterns.set(source, pattern)
    const steps = pattern.programSize() * text.length
    this.#steps += steps
    if (this.#steps < MANY_STEPS) return pattern.test(text)
    this.#steps = 0
    const remainingMs = this.#remainingMs()
    if (remainingMs <= 0) throw new BudgetExceeded('patterns take too long')
    if (steps < MANY_STEPS) return pattern.test(text)
    try {
      return testInTime(pattern, text, Math.ceil(remainingMs))
    } catch (error) {
      // An interrupted pattern may be in an inconsistent state.
      this.#patterns.delete(source)
      throw error
    }
  }

  #remainingMs(): number {
    const now = currentTimes()
    this.#startedAt ??= now
    // Not all versions of Node.js tell the time of a thread. It is neither longer than the time that passes nor than that of all
    // threads, such as those of the garbage collector and of the database driver.
    return PATTERN_MS - Math.min(now.passedMs - this.#startedAt.passedMs, now.processMs - this.#startedAt.processMs)
  }
}

interface Times {
  readonly passedMs: number
  /** The CPU time of all threads. */
  readonly processMs: number
}

const currentTimes = (): Times => {
  const { user, system } = process.cpuUsage()
  return { passedMs: performance.now(), processMs: (user + system) / 1000 }
}

const context: { test: () => boolean } = { test: () => false }
createContext(context)
const script = new Script('test()')

/** Only a script can be interrupted. */
const testInTime = (pattern: Pattern, text: string, timeout: number): boolean => {
  context.test = () => pattern.test(text)
  try {
    return script.runInContext(context, { timeout }) === true
  } catch (error) {
    throw new BudgetExceeded('patterns take too long', { cause: error })
  } finally {
    context.test = () => false
  }
}
