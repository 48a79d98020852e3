import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ProjectFile } from './project-files.js'

const OWNER_ONLY = 0o600
const DEFAULT_MODE = 0o666

/** The files that a project would replace. */
export const existingFiles = (folder: string, files: readonly ProjectFile[]): string[] =>
  files.map(({ path }) => join(folder, path)).filter((file) => existsSync(file))

/** Never replaces a file, even one that was created a moment ago. */
export const writeFiles = (folder: string, files: readonly ProjectFile[]): void => {
  for (const { path, content, isSecret = false } of files) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { flag: 'wx', mode: isSecret ? OWNER_ONLY : DEFAULT_MODE })
  }
}
