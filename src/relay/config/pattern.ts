import { linearRegExp } from '../../shared/linear-regexp.js'
import type { TextPattern } from '../core/options.js'
import type { ReportError } from './file.js'

/** A pattern with 1,000 repetitions has 2,000 instructions. Twice as many take a quarter of a second for every channel. */
const MAX_INSTRUCTIONS = 2_500

/** Compiles a regular expression of the file. Null after a report, and without a text. */
export const parsePattern = (option: string, source: string | undefined, report: ReportError): TextPattern | null => {
  if (source === undefined) return null
  try {
    const pattern = linearRegExp(source)
    if (pattern.programSize() > MAX_INSTRUCTIONS) throw new SyntaxError('too many repetitions')
    return Object.freeze({ source, test: (text: string) => pattern.test(text) })
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const reason = error.message.replace('error parsing regexp: ', '')
    report(option, `must be a regular expression in the syntax of RE2: ${reason}`)
    return null
  }
}
