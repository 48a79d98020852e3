import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Prints one line for each thing that must be true, and counts those that are not. */
export class Checks {
  #failed = 0
  readonly #say: (line: string) => void

  constructor(say: (line: string) => void) {
    this.#say = say
  }

  get failed(): number {
    return this.#failed
  }

  that(what: string, isSo: boolean, details: unknown = ''): void {
    if (!isSo) this.#failed++
    const facts = details === '' ? '' : ` (${typeof details === 'string' ? details : JSON.stringify(details)})`
    this.#say(`${isSo ? 'ok    ' : 'NOT OK'} ${what}${facts}`)
  }
}

/** All files below a folder, and what each takes; a second name for the same file takes nothing. */
export const contentsOf = (root: string): ReadonlyMap<string, number> => {
  const files = new Map<string, number>()
  const seen = new Set<number>()
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue
    const path = join(entry.parentPath, entry.name)
    const { ino, size } = lstatSync(path)
    files.set(path.slice(root.length), seen.has(ino) ? 0 : size)
    seen.add(ino)
  }
  return files
}
