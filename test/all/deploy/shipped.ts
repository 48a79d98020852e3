import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../../scripts/lib/root.js'

/** The text of a shipped file; `name` is relative to the root of the project. */
export const shipped = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

/** A replacement of all occurrences of a text in a shipped file. */
export type Change = readonly [from: string, to: string]

/** Applies the changes. Throws if a text does not occur, because the file then differs from what the test expects. */
export const changed = (text: string, changes: readonly Change[]): string =>
  changes.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the file does not contain ${JSON.stringify(from)}`)
    return before.replaceAll(from, to)
  }, text)

/** The variables of a systemd environment file. */
export const shippedEnvironment = (name: string): Record<string, string> =>
  Object.fromEntries(
    shipped(name)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  )
