import { readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import type { TestListener } from './tap-results.js'
import { TEST_RESULTS } from './test-cost.js'

/** Fields of tap's diagnostics that do not help to find the error. */
const HIDDEN = new Set(['args', 'command', 'compare', 'cwd', 'externalID', 'jobId', 'stdio', 'tapCaught', 'test'])

const LAST_LINES = 40

/** Where a test file's TAP is stored, for files that time out. */
export const savedOutputOf = (file: string): string => `${TEST_RESULTS}/${file}.tap`

/** Prints one line per test file, and the diagnostics of each failure as soon as it happens. */
export const testReport = (print: (line: string) => void, nameOf = (file: string): string => file): TestListener => {
  const fullName = ([file = '', ...tests]: readonly string[]): string => [nameOf(file), ...tests].join(' › ')
  return {
    failure(path, diag) {
      print(`\nFAILED  ${fullName(path)}`)
      const facts = describe(diag)
      if (facts !== '') print(facts.replace(/^(?=.)/gm, '    '))
    },

    skip(path, reason) {
      print(`skipped ${fullName(path)}${reason && `: ${reason}`}`)
    },

    fileEnd(file, { passed, failed }, output) {
      const name = nameOf(file)
      if (failed > 0 && output.trim() !== '') print(`${name} printed:\n${lastLines(output)}`)
      print(failed === 0 ? `ok      ${name} (${passed})` : `not ok  ${name} (${passed} passed, ${failed} failed)`)
    },

    runner(text) {
      // `npm run coverage` has the table.
      if (text !== '# No coverage generated\n' && text.trim() !== '') print(text.trimEnd())
    }
  }
}

const describe = (diag: unknown): string => {
  if (typeof diag !== 'object' || diag === null) return ''
  const facts = Object.entries(diag).filter(([name, value]) => !HIDDEN.has(name) && value !== null)
  const text = stringify(Object.fromEntries(facts)).trimEnd()
  return 'expired' in diag ? `${text}\n${savedOutput(String(diag.expired))}` : text
}

/** tap does not pass on the assertions of a file that timed out, but stores them on disk. */
const savedOutput = (file: string): string => {
  try {
    return `its assertions so far:\n${lastLines(readFileSync(savedOutputOf(file), 'utf8'))}`
  } catch {
    return 'it had not reported an assertion'
  }
}

const lastLines = (text: string): string => {
  const lines = text.trimEnd().split('\n')
  const left = lines.slice(-LAST_LINES)
  return (left.length < lines.length ? [`    … ${lines.length - left.length} lines before`, ...left] : left).join('\n')
}
