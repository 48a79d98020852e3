import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Prints one line per check and counts the failed ones. */
export class Checks {
  #failed = 0
  readonly #print: (line: string) => void

  constructor(print: (line: string) => void) {
    this.#print = print
  }

  get failed(): number {
    return this.#failed
  }

  that(title: string, isTrue: boolean, details: unknown = ''): void {
    if (!isTrue) this.#failed++
    const facts = details === '' ? '' : ` (${typeof details === 'string' ? details : JSON.stringify(details)})`
    this.#print(`${isTrue ? 'ok    ' : 'NOT OK'} ${title}${facts}`)
  }
}

/** All files below a folder with their size; further hard links of a file have size 0. */
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
