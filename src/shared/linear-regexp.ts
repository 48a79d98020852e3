import { RE2JS } from 're2js'

/** A compiled regular expression. */
export interface Pattern {
  test(text: string): boolean
}

/**
 * Compiles a regular expression that somebody else wrote, in the syntax of RE2. Its time is linear in the length of the
 * text, while some expressions keep V8 busy for years. Throws a `SyntaxError` for an invalid expression, for what RE2 does
 * not have (look-around and back references), and for an expression of more than `maxSize` instructions.
 */
export const linearRegExp = (source: string, maxSize = Number.POSITIVE_INFINITY): Pattern => {
  const pattern = compile(source)
  if (pattern.programSize() > maxSize) throw new SyntaxError('too many repetitions')
  return pattern
}

const compile = (source: string): RE2JS => {
  try {
    return RE2JS.compile(source)
  } catch (error) {
    throw new SyntaxError(error instanceof Error ? error.message : String(error), { cause: error })
  }
}
