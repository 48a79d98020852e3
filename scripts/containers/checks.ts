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

export interface Contents {
  /** Paths of all files. */
  readonly files: readonly string[]
  /** What they take, each once, however many names it has: the size that container engines show. */
  readonly bytes: number
}

export const contentsOf = (root: string): Contents => {
  const files: string[] = []
  const seen = new Set<number>()
  let bytes = 0
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (entry.isDirectory()) continue
    const path = join(entry.parentPath, entry.name)
    files.push(path.slice(root.length))
    const { ino, size } = lstatSync(path)
    if (!seen.has(ino)) bytes += size
    seen.add(ino)
  }
  return { files, bytes }
}
