import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../scripts/lib/root.js'

/** A file as it is shipped; `name` begins at the root of the project. */
export const shipped = (name: string): string => readFileSync(join(ROOT, name), 'utf8')

/** What a test changes in a shipped file: this text, wherever it stands, becomes that one. */
export type Change = readonly [from: string, to: string]

/** A change that finds nothing to change is a fault: then the file that is tested is not the file that was meant. */
export const changed = (text: string, changes: readonly Change[]): string =>
  changes.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`there is no ${JSON.stringify(from)} to be replaced`)
    return before.replaceAll(from, to)
  }, text)

/** The variables of an environment file, as systemd reads it. */
export const shippedEnvironment = (name: string): Record<string, string> =>
  Object.fromEntries(
    shipped(name)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  )
