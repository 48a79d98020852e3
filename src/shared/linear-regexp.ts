import { RE2JS } from 're2js'
import { messageOf } from './error-message.js'
import { toLinearSyntax } from './javascript-regexp.js'

/** A compiled regular expression. */
export interface Pattern {
  test(text: string): boolean
  /** The number of instructions. A test takes at most a time in proportion to it and to the length of the text. */
  programSize(): number
}

/**
 * Compiles a regular expression that somebody else wrote, in the syntax of RE2. Its time is linear in the length of the
 * text, while some expressions keep V8 busy for years. Throws a `SyntaxError` for an invalid expression, and for what RE2
 * does not have: look-around and back references.
 */
export const linearRegExp = (source: string): Pattern => {
  try {
    return RE2JS.compile(source)
  } catch (error) {
    throw new SyntaxError(messageOf(error), { cause: error })
  }
}

/** The same for the syntax and the meaning that a regular expression has in JavaScript with the flag `u`. */
export const linearRegExpOfJavaScript = (source: string): Pattern => {
  const alternatives = toLinearSyntax(source).map(({ main, lookAheads }) => ({
    main: linearRegExp(main),
    lookAheads: lookAheads.map((each) => ({ ...each, pattern: linearRegExp(each.source) }))
  }))
  const patterns = alternatives.flatMap(({ main, lookAheads }) => [main, ...lookAheads.map(({ pattern }) => pattern)])
  const size = patterns.reduce((sum, pattern) => sum + pattern.programSize(), 0)
  return {
    programSize: () => size,
    test: (text) =>
      alternatives.some(
        ({ main, lookAheads }) =>
          main.test(text) && lookAheads.every(({ pattern, isNegated }) => pattern.test(text) !== isNegated)
      )
  }
}
