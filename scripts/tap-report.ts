import { readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import type { TapListener } from './tap-totals.js'

/** tap's notes to itself, and the whole command line of a file that failed: nothing that helps to find the fault. */
const UNSAID = new Set(['args', 'at', 'command', 'compare', 'cwd', 'externalID', 'jobId', 'stdio', 'tapCaught', 'test'])

const LAST_LINES = 40

/** For a log that nobody watches live: one line per test file, and everything about what failed. */
export const tapReport = (say: (line: string) => void, nameOf = (file: string): string => file): TapListener => {
  const named = ([file = '', ...tests]: readonly string[]): string => [nameOf(file), ...tests].join(' › ')
  return {
    failure(path, diag) {
      say(`\nFAILED  ${named(path)}`)
      const facts = describe(diag)
      if (facts !== '') say(indent(facts))
    },

    skip(path, reason) {
      say(`skipped ${named(path)}${reason && `: ${reason}`}`)
    },

    fileEnd(file, ok, { passed, failed }, output) {
      const name = nameOf(file)
      if (!ok && output.trim() !== '') say(`${name} printed:\n${lastLines(output)}`)
      say(ok ? `ok      ${name} (${passed})` : `not ok  ${name} (${passed} passed, ${failed} failed)`)
    },

    runner(text) {
      // coverage is a command of its own
      if (text !== '# No coverage generated\n' && text.trim() !== '') say(text.trimEnd())
    }
  }
}

const describe = (diag: unknown): string => {
  if (typeof diag !== 'object' || diag === null) return ''
  const facts = Object.entries(diag)
    .filter(([key, value]) => !UNSAID.has(key) && value !== null)
    .map(([key, value]) => `${key}:${typeof value === 'string' ? block(value) : ` ${inspect(value, { depth: 6 })}`}`)
  if ('at' in diag && !('stack' in diag)) facts.push(...place(diag.at))
  if ('expired' in diag) facts.push(savedOutput(`${diag.expired}`))
  return facts.join('\n')
}

const block = (text: string): string => (text.includes('\n') ? `\n${indent(text.trimEnd())}` : ` ${text}`)

const place = (at: unknown): string[] =>
  typeof at === 'object' && at !== null && 'fileName' in at && 'lineNumber' in at
    ? [`at: ${at.fileName}:${at.lineNumber}`]
    : []

/** tap drops the points of a file that took too long, the unfinished one among them, but keeps them on disk. */
const savedOutput = (file: string): string => {
  try {
    return `its points so far:\n${lastLines(readFileSync(`.tap/test-results/${file}.tap`, 'utf8'))}`
  } catch {
    return 'it had not reported a point'
  }
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, '    ')

const lastLines = (text: string): string => {
  const lines = text.trimEnd().split('\n')
  const left = lines.slice(-LAST_LINES)
  return (left.length < lines.length ? [`    … ${lines.length - left.length} lines before`, ...left] : left).join('\n')
}
