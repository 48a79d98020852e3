import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const projectFolder = (start: string): string =>
  existsSync(join(start, 'package-lock.json')) ? start : projectFolder(dirname(start))

/** The project's folder, also when this file runs from a build folder. */
export const ROOT = projectFolder(dirname(fileURLToPath(import.meta.url)))
