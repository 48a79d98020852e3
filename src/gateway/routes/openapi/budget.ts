import { createContext, Script } from 'node:vm'
import isSafePattern from 'safe-regex2'

/** Thrown during a validation that would take too long. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded'
}

/** A regular expression of a schema. Throws a `SyntaxError` if it is invalid. */
export const toRegExp = (source: string): RegExp =>
  // Without the flag, `\p{L}` would be the letter p.
  new RegExp(source, /\\[pP]\{|\\u\{/.test(source) ? 'u' : '')

const PATTERN_MS = 250
/** In shorter texts, a pattern without nested repetitions takes no time worth limiting. */
const SHORT_TEXT = 256

/**
 * Limits one validation at a time. The schemas come from an API description, and a few bytes of a request can make the
 * validation of some schemas, and some regular expressions, take years.
 */
export class ValidationBudget {
  readonly #maxEvaluations: number
  #evaluations = 0
  #patternMs = PATTERN_MS

  constructor(maxEvaluations: number) {
    this.#maxEvaluations = maxEvaluations
  }

  reset(): void {
    this.#evaluations = 0
    this.#patternMs = PATTERN_MS
  }

  /** Counts the evaluation of a schema with references. Always true: it serves as a keyword. */
  countEvaluation(): true {
    this.#evaluations += 1
    if (this.#evaluations > this.#maxEvaluations) throw new BudgetExceeded('too many evaluations')
    return true
  }

  /** A pattern in the form that Ajv uses. */
  pattern(source: string): { test(text: string): boolean; toString(): string } {
    const pattern = toRegExp(source)
    const isSafe = isSafePattern(pattern)
    return {
      test: (text) => (isSafe && text.length <= SHORT_TEXT ? pattern.test(text) : this.#testInTime(pattern, text)),
      toString: () => String(pattern)
    }
  }

  #testInTime(pattern: RegExp, text: string): boolean {
    if (this.#patternMs <= 0) throw new BudgetExceeded('patterns take too long')
    const startedAt = performance.now()
    const isMatch = testInTime(pattern, text, Math.ceil(this.#patternMs))
    this.#patternMs -= performance.now() - startedAt
    return isMatch
  }
}

const context: { pattern: RegExp; text: string } = { pattern: /^/, text: '' }
createContext(context)
const script = new Script('pattern.test(text)')

/** Only a script can be interrupted while it evaluates a regular expression. */
const testInTime = (pattern: RegExp, text: string, timeout: number): boolean => {
  context.pattern = pattern
  context.text = text
  try {
    return script.runInContext(context, { timeout }) === true
  } catch (error) {
    throw new BudgetExceeded('patterns take too long', { cause: error })
  }
}
